package zone

import (
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// A generation is a limiter that a zone has or had.
type generation struct {
	made    Spec
	limiter *engine.Limiter     // of this process
	backend *redislimit.Limiter // or in a store
	store   *store

	// formers are the limiters that the zone had before, the latest last, against which requests are held, too, until
	// they have forgotten what they counted. Under the lock of the zone.
	formers []*former

	uses int // that have it; under the lock of the zone
}

// newGeneration makes the limiter of a zone.
func newGeneration(id id, spec Spec, host host) (*generation, error) {
	g := &generation{made: spec}
	var err error
	if spec.Store == "" {
		g.limiter, err = spec.limiter()
		return g, err
	}
	if g.store, err = host.store(spec.Store, spec.Timeout, spec.OnFailure != redislimit.FailClosed); err != nil {
		return nil, err
	}
	if g.backend, err = redislimit.New(g.store.client, id.stored(), spec.Policy, spec.storeOptions()...); err != nil {
		g.store.release()
		return nil, err
	}
	return g, nil
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
