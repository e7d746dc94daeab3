package zone

import (
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
	"github.com/weir-go/weir/redislimit"
)

// A generation is a limiter that a zone has or had.
type generation struct {
	spec    Spec                // the spec with which the limiter was made
	limiter *live.Limiter       // the limiter, if it is in this process
	backend *redislimit.Limiter // or the limiter, if it is in a store
	store   *store

	uses int // number of uses that have it; guarded by the lock of the zone
}

// newGeneration makes a limiter for a zone. The new limiter also counts the tokens that keys owe to the limiter of the
// previous generation.
func newGeneration(id id, spec Spec, host host, previous *generation) (*generation, error) {
	g := &generation{spec: spec}
	var err error
	if spec.Store == "" {
		limiter, err := spec.limiter()
		if err != nil {
			return nil, err
		}
		// The new limiter does not take over debts in a file, because other processes may still count in the file.
		if previous == nil || !hasTokens(previous.spec) || previous.spec.State != "" || !hasTokens(spec) {
			g.limiter = live.New(limiter)
			return g, nil
		}
		if g.limiter, err = previous.limiter.Replace(limiter); err != nil {
			_ = limiter.Close() // always nil
		}
		return g, err
	}
	if g.store, err = host.store(spec.Store, spec.Timeout, spec.OnLoss != redislimit.FailClosed); err != nil {
		return nil, err
	}
	if g.backend, err = redislimit.New(g.store.client, id.storeName(), spec.Policy, spec.storeOptions()...); err != nil {
		g.store.release()
		return nil, err
	}
	return g, nil
}

// hasTokens reports whether the spec's limiter counts tokens in this process or in a file. It returns false for
// requests in flight, for a limit in a store, and for a fixed answer.
func hasTokens(spec Spec) bool {
	a := spec.Policy.Algorithm()
	return spec.Store == "" && a != engine.NoAlgorithm && a != engine.AlgorithmConcurrency
}

// close ends the background work of the generation. The limiter of the generation still decides, and renews places of
// requests in flight in the store.
func (g *generation) close() {
	if g.limiter != nil {
		g.limiter.Release()
	}
	if g.backend != nil {
		_ = g.backend.Close() // always nil
		g.store.release()
	}
}
