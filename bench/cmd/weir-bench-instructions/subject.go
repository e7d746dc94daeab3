//go:build linux && amd64

package main

import (
	"fmt"
	"net/netip"
	"runtime"
	"runtime/debug"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// A call is what is counted: call i of many.
type call struct {
	name string
	make func(i int)
}

// repeats is how many calls of a kind are stepped through.
const repeats = 32

// keyCounts are how many keys there are in a limiter for a million.
var keyCounts = []int{1, 1000, 1_000_000}

// names returns the names of the calls, in the order in which calls makes them.
func names() (all []string) {
	for _, keys := range keyCounts {
		for _, name := range []string{"empty", "floor, TSC clock", "Allow", "Take", "AllowKey(KeyAddr)", "Allow, coarse clock",
			"TakeKey", "TakeReceipt", "HoldKey", "Settle, less", "Settle, more", "RefundKey", "ChargeKey"} {
			all = append(all, fmt.Sprintf("%s\t%d", name, keys))
		}
	}
	return all
}

// calls makes the limiters and returns what is called, for every number of keys.
func calls() (all []call, err error) {
	for _, keys := range keyCounts {
		row := workload.Row{Name: "instructions", Keys: keys, Capacity: 1_000_000, Requests: keys}
		texts, addrs := make([]string, keys), make([]netip.Addr, keys)
		for i := range keys {
			texts[i] = fmt.Sprintf("tenant-%d/user-%d", i%17, i)
			addrs[i] = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		}
		tsc, err := measure.Weir(&row, engine.ClockTSC())
		if err != nil {
			return nil, err
		}
		coarse, err := measure.Weir(&row, engine.ClockCoarse())
		if err != nil {
			return nil, err
		}
		floor, _, err := measure.Open(&row, measure.FloorTSC, nil)
		if err != nil {
			return nil, err
		}
		bare := floor.(measure.Keyed).Limiter
		var hashed [repeats]engine.Key
		for i := range hashed {
			hashed[i] = tsc.Key(texts[i*7919%keys])
		}
		held := newHolds(tsc, hashed[:])
		for i := range keys {
			tsc.Allow(texts[i])
			coarse.Allow(texts[i])
			tsc.AllowKey(tsc.KeyAddr(addrs[i]))
		}
		all = append(all,
			call{"empty", func(int) {}},
			call{"floor", func(i int) { bare.Allow(texts[i*7919%keys]) }},
			call{"Allow", func(i int) { tsc.Allow(texts[i*7919%keys]) }},
			call{"Take", func(i int) { tsc.Take(texts[i*7919%keys], 1) }},
			call{"KeyAddr", func(i int) { tsc.AllowKey(tsc.KeyAddr(addrs[i*7919%keys])) }},
			call{"coarse", func(i int) { coarse.Allow(texts[i*7919%keys]) }},
			call{"TakeKey", func(i int) { tsc.TakeKey(hashed[i], 1) }},
			call{"TakeReceipt", func(i int) { tsc.TakeReceipt(hashed[i], 1) }},
			call{"HoldKey", func(i int) {
				h, _ := tsc.HoldKey(hashed[i], 1)
				_ = &h
			}},
			call{"Settle, less", func(int) { held.next().Settle(1) }},
			call{"Settle, more", func(int) { held.next().Settle(3) }},
			call{"RefundKey", func(i int) { tsc.RefundKey(hashed[i], 1) }},
			call{"ChargeKey", func(i int) { tsc.ChargeKey(hashed[i], 1) }})
	}
	return all, nil
}

// holds are as many as are settled.
type holds struct {
	of   [4 * repeats]engine.Hold
	used int
}

func newHolds(l *engine.Limiter, keys []engine.Key) *holds {
	h := &holds{}
	for i := range h.of {
		h.of[i], _ = l.HoldKey(keys[i%len(keys)], 2)
	}
	return h
}

func (h *holds) next() *engine.Hold {
	h.used++
	return &h.of[h.used-1]
}

// child makes every call between two breakpoints, on the thread that is stepped through.
func child() error {
	runtime.LockOSThread()
	all, err := calls()
	if err != nil {
		return err
	}
	runtime.GC()
	debug.SetGCPercent(-1)
	for _, c := range all {
		for i := range repeats {
			c.make(i)         // so that what is done once is done
			runtime.Gosched() // its turn begins anew
			runtime.Breakpoint()
			c.make(i)
			runtime.Breakpoint()
		}
	}
	return nil
}
