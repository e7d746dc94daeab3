package zone

import (
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// A generation is a limiter that a zone has or had.
type generation struct {
	made    Spec
	limiter *engine.Limiter     // of this process
	backend *redislimit.Limiter // or in a store
	store   *store

	// before is the generation that this one follows, if requests are held against that, too, until it has forgotten
	// what it counted; and against the one before that, if it has not forgotten either. ends is when that is, in
	// nanoseconds since 1970; 0 while this generation is not in force.
	before *generation
	ends   atomic.Int64

	uses int // that have it; under the lock of the zone
}

// newGeneration makes the limiter of a zone.
func newGeneration(id id, spec Spec, open opener) (*generation, error) {
	g := &generation{made: spec}
	var err error
	if spec.Store == "" {
		g.limiter, err = spec.limiter()
		return g, err
	}
	if g.store, err = openStore(spec.Store, open); err != nil {
		return nil, err
	}
	if g.backend, err = redislimit.New(g.store.client, id.name, spec.Policy, spec.storeOptions()...); err != nil {
		g.store.release()
		return nil, err
	}
	return g, nil
}

// follow has requests held against the generation before, too, where that can be: where both count in this process, and
// what the one before counts is over after a while.
func (g *generation) follow(before *generation) {
	if g.limiter == nil || before == nil || before.limiter == nil || before.made.Policy.Longest() != 0 ||
		before.limiter.Algorithm() == engine.AlgorithmConcurrency || before.limiter.Algorithm() == engine.NoAlgorithm {
		return
	}
	g.before = before
}

// begin notes that the generation is in force, and when that before it has forgotten, which was under a policy.
func (g *generation) begin(now time.Time, policy engine.Policy) {
	if g.before != nil {
		g.ends.CompareAndSwap(0, now.Add(max(policy.Window(), g.before.made.Policy.Window())).UnixNano())
	}
}

// stillFollows reports whether requests are held against the generation before, too.
func (g *generation) stillFollows(now func() time.Time) bool {
	ends := g.ends.Load()
	return g.before != nil && (ends == 0 || now().UnixNano() < ends)
}

// close ends what the generation does in the background. Its limiter still decides.
func (g *generation) close() {
	if g.limiter != nil {
		_ = g.limiter.Close() // always nil
	}
	if g.backend != nil {
		_ = g.backend.Close() // always nil
		g.store.release()
	}
}
