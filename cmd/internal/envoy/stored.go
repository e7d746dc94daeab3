package envoy

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

type storeTable struct{ limiter *redislimit.Limiter }

func (t storeTable) key(text []byte) counter { return counter{text: string(text)} }

func (t storeTable) take(ctx context.Context, c counter, n uint64) (engine.Decision, error) {
	return t.limiter.Take(ctx, c.text, n)
}

func (t storeTable) peek(ctx context.Context, c counter, n uint64) (engine.Decision, error) {
	return t.limiter.Peek(ctx, c.text, n)
}

func (t storeTable) charge(ctx context.Context, c counter, n uint64) (engine.Decision, error) {
	return t.limiter.Charge(ctx, c.text, n)
}

func (t storeTable) refund(ctx context.Context, c counter, n uint64) error {
	return t.limiter.Refund(ctx, c.text, n)
}

func (t storeTable) reset(ctx context.Context, c counter) error { return t.limiter.Reset(ctx, c.text) }

func (t storeTable) stats() engine.Stats { return engine.Stats{} } // the store's business
func (t storeTable) close() error        { return t.limiter.Close() }

// inStore has every decision ask the store: counts that are compared with a limit here must be those of all replicas.
// A token bucket is held against its limit by the store, which may so lend tokens of it.
func inStore(o Options) func(config.Limit, engine.Policy) (table, error) {
	return func(kind config.Limit, policy engine.Policy) (table, error) {
		// Without the numbers of the limit, so that a key keeps what it has used when they change.
		name := fmt.Sprintf("envoy %s %s", kind.Algorithm, kind.Window)
		if kind.Algorithm == engine.AlgorithmTokenBucket {
			name = fmt.Sprintf("envoy %s", kind.Algorithm)
		}
		options := []redislimit.Option{redislimit.SharedName(), redislimit.InMode(redislimit.Strict), redislimit.OnFailure(redislimit.FailClosed)}
		if o.Replicas > 0 && kind.Algorithm == engine.AlgorithmTokenBucket {
			options = append(options, redislimit.InMode(redislimit.Auto), redislimit.Nodes(o.Replicas))
		}
		store := o.Store
		if kind.Window == time.Second && o.PerSecondStore != nil {
			store = o.PerSecondStore
		}
		limiter, err := redislimit.New(store, name, policy, options...)
		return storeTable{limiter}, err
	}
}
