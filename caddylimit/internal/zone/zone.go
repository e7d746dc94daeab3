package zone

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

// An id identifies a zone. Zones of different modules are independent.
type id struct{ module, name string }

var zones = caddy.NewUsagePool()

// A Zone is a named limit that lives as long as consecutive configurations use it. Its methods are safe for concurrent
// use.
type Zone struct {
	id     id
	counts [len(countedOutcomes)]atomic.Uint64

	mu      sync.Mutex
	value   any    // a value that a module keeps across configurations
	started []*Use // the uses of active configurations, the latest last
}

// storeName returns the zone's name in a store. For package compat, the name includes the module, so that the zone
// shares no count with package caddylimit.
func (i id) storeName() string {
	if i.module == "weir" {
		return i.name
	}
	return i.module + "/" + i.name
}

// countedOutcomes are the outcomes that a zone counts.
var countedOutcomes = [...]limits.Outcome{
	limits.NotTaken, limits.Allowed, limits.Refused, limits.ShadowRefused, limits.Failed,
}

// Count counts the outcomes of a request: one outcome for each limit of the request. The function useOf returns the
// use of the zone in which a limit's outcome counts.
func Count(res *httplimit.Result, useOf func(limit string) *Use) {
	for i := range res.Len() {
		c := res.Check(i)
		useOf(c.Name()).counts[c.Outcome].Add(1)
	}
}

// Counted returns how many requests have had the outcome o since the zone was made.
func (z *Zone) Counted(o limits.Outcome) uint64 { return z.counts[o].Load() }

// Kept returns a module's value for a zone. The first call makes the value. It is kept as long as any configuration
// uses the zone.
func Kept[T any](z *Zone, make func() T) T {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.value == nil {
		z.value = make()
	}
	return z.value.(T)
}

// Destruct does nothing. It exists because Caddy's pool of zones requires it.
func (z *Zone) Destruct() error { return nil }

// A Use is a zone as used by one configuration.
type Use struct {
	*Zone
	Spec Spec
	// Renewed reports that the zone has a new limiter, because the previous limiter did not accept the spec.
	Renewed bool

	gen  *generation
	host host
}

// newUse returns a new use of a zone for a configuration with this spec. The new use does not affect active uses.
func newUse(id id, spec Spec, host host) (*Use, error) {
	if err := spec.check(id.storeName()); err != nil {
		return nil, err
	}
	shared, _, err := zones.LoadOrNew(id, func() (caddy.Destructor, error) { return &Zone{id: id}, nil })
	if err != nil {
		return nil, err
	}
	z := shared.(*Zone)
	z.mu.Lock()
	defer z.mu.Unlock()
	u := &Use{Zone: z, Spec: spec, host: host}
	var current *Use
	if n := len(z.started); n > 0 {
		current = z.started[n-1]
	}
	if current != nil && spec.follows(current.gen.spec) {
		u.gen = current.gen
	} else {
		var previous *generation
		if current != nil {
			previous, u.Renewed = current.gen, true
		}
		if u.gen, err = newGeneration(id, spec, host, previous); err != nil {
			_, _ = zones.Delete(id)
			return nil, err
		}
	}
	u.gen.uses++
	return u, nil
}

func (u *Use) start() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.apply(); err != nil {
		return err
	}
	u.started = append(u.started, u)
	return nil
}

// For a limit in a store, apply makes the store's connection write to the log of the configuration. For any other
// limit, apply sets the limiter's policy to the policy of the use.
func (u *Use) apply() error {
	if u.gen.store != nil {
		u.gen.store.log.logger.Store(u.host.log)
	}
	if u.gen.limiter == nil {
		return nil
	}
	for i, p := range u.Spec.policies() {
		if u.gen.limiter.Policy(i) != p {
			return u.gen.limiter.SetPolicy(u.Spec.Policy, u.Spec.tiers()...)
		}
	}
	return nil
}

// stop deactivates the use. If this use was the latest, the previous use becomes the latest again.
func (u *Use) stop() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, use := range u.started {
		if use == u {
			u.started = append(u.started[:i:i], u.started[i+1:]...)
			if n := len(u.started); i > 0 && i == n {
				return u.started[n-1].apply()
			}
			return nil
		}
	}
	return nil
}

func (u *Use) drop() error {
	u.mu.Lock()
	u.gen.uses--
	last := u.gen.uses == 0
	u.mu.Unlock()
	if last {
		u.gen.close()
	}
	_, err := zones.Delete(u.id)
	return err
}

// Keys returns how many keys the limiter had at its last sweep (live), and how many keys it has evicted for lack of
// room (evicted). Both numbers are 0 for a zone in a store.
func (u *Use) Keys() (live, evicted uint64) {
	if u.gen.limiter == nil {
		return 0, 0
	}
	stats := u.gen.limiter.Stats()
	return stats.Keys, stats.Evictions
}

// keepsCounts reports whether the tokens used under earlier configurations still count.
func (u *Use) keepsCounts() bool { return u.gen.limiter != nil && u.gen.limiter.Formers().Any() }

// Name returns the name of the zone.
func (u *Use) Name() string { return u.id.name }

// CheckName returns an error for a name that headers do not accept. Limits of the middleware do not accept such a name
// either.
func CheckName(name string) error {
	const maxLength = 128
	isPrintable := !strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' })
	if name == "" || len(name) > maxLength || !isPrintable {
		return fmt.Errorf("the name goes into headers: want 1 to %d printable ASCII characters", maxLength)
	}
	return nil
}

// Limit returns l with the zone as its source.
func (u *Use) Limit(l httplimit.Limit) httplimit.Limit {
	if u.gen.backend != nil {
		l.Source, l.OnLoss = u.gen.backend.Source(), limits.Closed
		return l
	}
	l.Limiter = u.gen.limiter.Limiter
	if hasTokens(u.gen.spec) {
		l.Formers = u.gen.limiter.Formers()
	}
	return l
}

// String returns the name of the zone and its spec.
func (u *Use) String() string { return fmt.Sprintf("%q, %v", u.id.name, u.Spec) }
