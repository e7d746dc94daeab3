package zone

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weir-go/weir/httplimit"
)

// An id names a zone: those of two modules have nothing in common.
type id struct{ module, name string }

// zones are those that any configuration uses.
var zones = caddy.NewUsagePool()

// A Zone is a named limit, over all configurations that follow each other and use it. Its methods are safe for
// concurrent use.
type Zone struct {
	id     id
	counts [len(counted)]atomic.Uint64

	mu      sync.Mutex
	started []*Use // the uses of configurations that are in force, the latest last
}

// counted are the outcomes that a zone counts.
var counted = [...]httplimit.Outcome{
	httplimit.NotTaken, httplimit.Allowed, httplimit.Refused, httplimit.ShadowRefused, httplimit.BackendFailed,
}

// Count counts what the zones did to a request. of returns the zone of a limit of the middleware; the limiters of one
// zone ([Use.Limits]) follow each other there, and count as one, which refuses if one of them does.
func Count(res *httplimit.Result, of func(limit string) *Use) {
	for i := 0; i < res.Len(); {
		c := res.Check(i)
		u, outcome := of(c.Limit), c.Outcome
		for i++; i < res.Len(); i++ {
			next := res.Check(i)
			if of(next.Limit) != u {
				break
			}
			if next.Outcome == httplimit.Refused {
				outcome = httplimit.Refused
			}
		}
		u.counts[outcome].Add(1)
	}
}

// Counted returns how often a request had an outcome, since the zone began.
func (z *Zone) Counted(o httplimit.Outcome) uint64 { return z.counts[o].Load() }

// Destruct is for the pool of the zones.
func (z *Zone) Destruct() error { return nil }

// A Use is a zone as one configuration uses it.
type Use struct {
	*Zone
	Spec Spec
	gen  *generation
	now  func() time.Time
}

// newUse returns the zone as a configuration with this spec uses it. It changes nothing that is in force.
func newUse(id id, spec Spec, open opener, now func() time.Time) (*Use, error) {
	if err := spec.check(id.name); err != nil {
		return nil, err
	}
	shared, _, err := zones.LoadOrNew(id, func() (caddy.Destructor, error) { return &Zone{id: id}, nil })
	if err != nil {
		return nil, err
	}
	z := shared.(*Zone)
	z.mu.Lock()
	defer z.mu.Unlock()
	u := &Use{Zone: z, Spec: spec, now: now}
	var current *generation
	if n := len(z.started); n > 0 {
		current = z.started[n-1].gen
	}
	if current != nil && spec.follows(current.made) {
		u.gen = current
	} else if u.gen, err = newGeneration(id, spec, open); err != nil {
		_, _ = zones.Delete(id)
		return nil, err
	} else {
		u.gen.follow(current)
	}
	u.gen.uses++
	return u, nil
}

// start puts the use in force.
func (u *Use) start() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := len(u.started)
	if err := u.apply(); err != nil {
		return err
	}
	if n > 0 && u.started[n-1].gen != u.gen {
		u.gen.begin(u.now(), u.started[n-1].Spec.Policy)
	}
	u.started = append(u.started, u)
	return nil
}

// apply has the limiter take the policy of the use.
func (u *Use) apply() error {
	if u.gen.limiter == nil || u.gen.limiter.Policy(0) == u.Spec.Policy {
		return nil
	}
	return u.gen.limiter.SetPolicy(u.Spec.Policy)
}

// stop takes the use out of force. If it was the latest, the one before it is the latest again.
func (u *Use) stop() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, other := range u.started {
		if other == u {
			u.started = append(u.started[:i:i], u.started[i+1:]...)
			if n := len(u.started); i > 0 && i == n {
				return u.started[n-1].apply()
			}
			return nil
		}
	}
	return nil
}

// drop ends the use.
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

// Renewed reports whether the zone has another limiter than under the configuration before, because that could not take
// the spec.
func (u *Use) Renewed() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := len(u.started)
	return n > 0 && u.started[n-1].gen != u.gen
}

// Keys returns how many keys the limiter counted at its last sweep, and how many it has forgotten for want of room,
// which are both 0 of one in a store.
func (u *Use) Keys() (live, evicted uint64) {
	if u.gen.limiter == nil {
		return 0, 0
	}
	stats := u.gen.limiter.Stats()
	return stats.Keys, stats.Evictions
}

// Name returns the name of the zone.
func (u *Use) Name() string { return u.id.name }

// beforeSuffix sets apart the limiter of the generation before.
const beforeSuffix = " (until it has forgotten)"

// Limits returns the limit with the limiter of the zone, and for a while that of the generation before.
func (u *Use) Limits(l httplimit.Limit) []httplimit.Limit {
	g := u.gen
	if g.backend != nil {
		l.Backend, l.OnError, l.Window = g.backend, httplimit.FailClosed, u.Spec.Policy.Window()
		if l.Quota != nil {
			l.BackendQuota = backendQuota(g.backend)
		}
		return []httplimit.Limit{l}
	}
	l.Limiter = g.limiter
	limits := []httplimit.Limit{l}
	for match := l.Match; g.stillFollows(u.now); g = g.before {
		after := g
		l.Name, l.Limiter, l.Quota = l.Name+beforeSuffix, g.before.limiter, nil
		l.Match = func(r *http.Request) bool { return after.stillFollows(u.now) && (match == nil || match(r)) }
		limits = append(limits, l)
	}
	return limits
}

// String names the zone.
func (u *Use) String() string { return fmt.Sprintf("%q, %v", u.id.name, u.Spec) }
