package measure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/bench/floor"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// These are the names of the subjects that are not peers.
const (
	WeirTSC     = "weir, TSC clock"
	WeirCoarse  = "weir, coarse clock"
	WeirPrecise = "weir, precise clock"
	WeirSingle  = "weir, TakeKey"
	WeirBatch   = "weir, TakeBatch"

	// These subjects are weir on the rows of real clients and of keys that come back.
	WeirTake      = "weir, Take"
	WeirAddr      = "weir, KeyAddr"
	WeirDecide    = "weir, httplimit"
	WeirAll       = "weir, All of 3"
	WeirTiers     = "weir, Tiers"
	WeirAt        = "weir, TakeAt"
	WeirNeverIdle = "weir, never idle"

	FloorTSC     = "floor, TSC clock"
	FloorCoarse  = "floor, coarse clock"
	FloorPrecise = "floor, precise clock"
	FloorHot     = "floor, contended CAS"

	Loop         = "loop alone"
	Hash         = "hash alone"
	Swap         = "CAS alone"
	ClockCoarse  = "coarse clock alone"
	ClockTSC     = "TSC clock alone"
	ClockPrecise = "precise clock alone"
)

// Of returns the names of weir and the floors that are measured on a row. A row with keys in the caches has every
// clock, because it shows the cost of a clock. Other rows have the default clock.
func Of(r *workload.Row) []string {
	switch {
	case r.Batch:
		return []string{WeirSingle, WeirBatch}
	case r.Hot:
		return []string{FloorHot, FloorTSC, FloorCoarse, WeirTSC, WeirCoarse}
	case r.Draw == workload.InTurn:
		return []string{FloorCoarse, FloorTSC, FloorPrecise, WeirCoarse, WeirTSC, WeirPrecise, WeirTake}
	}
	weir, lowest := Default()
	names := []string{lowest, weir}
	if r.Draw == workload.Mixed { // because a floor decides nothing
		return []string{weir, WeirTake}
	}
	if !r.Everyday() && !r.Returning {
		names = append(names, WeirTake)
	}
	switch {
	case r.Returning:
		names = append(names, WeirNeverIdle)
	case r.Draw == workload.Logged:
		names = append(names, WeirTake, WeirAddr, WeirDecide, WeirAll, WeirTiers)
	case r.Draw == workload.Poisson:
		names = append(append(names, WeirTake, WeirAddr, WeirDecide, WeirAll, WeirTiers, WeirAt), handlers()...)
	}
	return names
}

// Default returns the names of weir and of the floor with the clock that weir reads by default on this machine. That is
// the precise clock if the kernel does not trust the processor's time stamp counter.
func Default() (weir, lowest string) {
	if floor.TSC() {
		return WeirTSC, FloorTSC
	}
	return WeirPrecise, FloorPrecise
}

// Parts returns the names of the parts of a floor.
func Parts() []string {
	return []string{Loop, Hash, Swap, ClockCoarse, ClockTSC, ClockPrecise}
}

// IsWeir and IsFloor report whether a name belongs to weir or to a floor.
func IsWeir(name string) bool  { return strings.HasPrefix(name, "weir") }
func IsFloor(name string) bool { return strings.HasPrefix(name, "floor") }

// FloorOf returns the floor with which a subject is compared. For weir, this is the floor with the same clock. For
// peers, it is the floor with the default clock, so that all bars of a chart have one unit. The peers themselves read
// the precise clock.
func FloorOf(r *workload.Row, name string) string {
	weir, lowest := Default()
	switch {
	case r.Batch:
		return WeirSingle
	case r.Draw == workload.Mixed:
		return weir
	case r.Hot:
		return FloorHot
	case name == WeirCoarse:
		return FloorCoarse
	case name == WeirPrecise:
		return FloorPrecise
	}
	return lowest
}

// Cannot returns why a subject is not measured on a row, or "" if it is measured.
func Cannot(r *workload.Row, name string) string {
	if why := r.Missing(); why != "" {
		return why
	}
	if strings.Contains(name, "TSC") && !floor.TSC() {
		return "the kernel does not trust this processor's counter"
	}
	for _, p := range peers.All() {
		if p.Name == name {
			if r.Want() < 1 && p.Cannot[peers.Refuse] != "" {
				return p.Cannot[peers.Refuse]
			}
			if r.Keys > 1 {
				return p.Cannot[peers.Keys]
			}
		}
	}
	return ""
}

// Slots returns the number of slots of weir's table for a given number of keys.
func Slots(keys int) uint64 { return uint64(float64(keys) / 0.6) }

var clocks = map[string]engine.Option{
	WeirTSC: engine.ClockTSC(), WeirCoarse: engine.ClockCoarse(), WeirPrecise: engine.ClockPrecise(),
}

// Weir returns weir's limiter for a row. Its table is already in memory.
func Weir(r *workload.Row, clock engine.Option, options ...engine.Option) (*engine.Limiter, error) {
	return weirOf(r, policyOf(r.Limit()), clock, options...)
}

// weirOf is Weir with another policy. It ignores options for an aged row.
func weirOf(r *workload.Row, policy engine.Policy, clock engine.Option, options ...engine.Option) (
	*engine.Limiter, error) {
	if r.Aged {
		return openAged(r, policy, clock)
	}
	return engine.New(policy, append([]engine.Option{engine.MaxKeys(r.Capacity), engine.Prefault(), clock}, options...)...)
}

func policyOf(l peers.Limit) engine.Policy {
	return engine.TokenBucket(engine.Per(float64(l.Tokens), l.Per), uint64(l.Burst))
}

// Open makes the subject with that name for a row, without any decision so far. The caller must call the function
// release at the end.
func Open(r *workload.Row, name string, requests *workload.Stream) (d Decider, release func(), err error) {
	if clock, ok := clocks[name]; ok {
		l, err := Weir(r, clock)
		if err != nil {
			return nil, nil, err
		}
		return Keyed{Limiter: l}, func() { l.Close() }, nil
	}
	if open, ok := everydayCalls[name]; ok {
		return open(r, requests)
	}
	if slices.Contains(handlers(), name) {
		return openHandler(r, name, requests)
	}
	if name == WeirNeverIdle {
		return openNeverIdle(r)
	}
	if name == WeirSingle || name == WeirBatch {
		return openBatch(r, name == WeirBatch, requests)
	}
	for _, p := range peers.All() {
		if p.Name == name {
			l, err := p.New(r.Limit(), r.Capacity)
			return Keyed{Limiter: l}, func() {}, err
		}
	}
	f, release, err := floor.New(floor.NewClock(), Slots(r.Capacity))
	if err != nil {
		return nil, nil, err
	}
	l, ok := floors(f, r.Refused)[name]
	if !ok {
		release()
		return nil, nil, fmt.Errorf("%q is nothing that could be measured", name)
	}
	return Keyed{Limiter: l}, release, nil
}

func floors(f *floor.Floor, refused bool) map[string]peers.Limiter {
	limiters := map[string]peers.Limiter{
		FloorCoarse:  floor.AdmitCoarse{Floor: f},
		FloorTSC:     floor.AdmitTSC{Floor: f},
		FloorPrecise: floor.AdmitPrecise{Floor: f},
		FloorHot:     floor.Hot{Floor: f},
		Loop:         floor.Loop{},
		Hash:         floor.Hash{Floor: f},
		Swap:         floor.Swap{Floor: f},
		ClockCoarse:  floor.ClockCoarse{Floor: f},
		ClockTSC:     floor.ClockTSC{},
		ClockPrecise: floor.ClockPrecise{Floor: f},
	}
	if refused {
		limiters[FloorCoarse] = floor.RefuseCoarse{Floor: f}
		limiters[FloorTSC] = floor.RefuseTSC{Floor: f}
		limiters[FloorPrecise] = floor.RefusePrecise{Floor: f}
	}
	return limiters
}
