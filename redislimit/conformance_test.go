package redislimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/httpfront"
	"github.com/weir-go/weir/internal/conformance/rpcfront"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit"
)

// TestConformance runs the conformance cases with a store, for the fronts whose modules do not require this module.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, front := range []conformance.Front{
		httpfront.Front(inStore), rpcfront.Direct("gRPC", inStore), rpcfront.Direct("Connect", inStore),
	} {
		unit := time.Duration(1)
		if front.Name == "httplimit" {
			unit = time.Second // the unit of the header Retry-After
		}
		front.Promise, front.Runs = promise(unit, nil), func(k *conformance.Case) bool { return k.Stored }
		t.Run(front.Name, func(t *testing.T) { conformance.Run(t, front) })
	}
}

func inStore(env *conformance.Env, c conformance.Config, l conformance.Limit) (limits.Source, error) {
	return source(env, c, l)
}

func source(env *conformance.Env, c conformance.Config, l conformance.Limit, more ...redislimit.Option) (limits.Source, error) {
	ctx, cancel := context.WithTimeout(env.T.Context(), 5*time.Second)
	defer cancel()
	options := []redislimit.ClientOption{redislimit.Timeout(c.Timeout())}
	if c.OnLoss != conformance.Closed {
		options = append(options, redislimit.JoinLater())
	}
	client, err := redislimit.Open(ctx, "redis://"+c.Store.Address(), options...)
	if err != nil {
		return nil, err
	}
	policy := map[conformance.Loss]redislimit.FailurePolicy{
		conformance.Share: redislimit.FailShare, conformance.Open: redislimit.FailOpen, conformance.Closed: redislimit.FailClosed,
	}[c.OnLoss]
	own := l.Own()
	if l.ByQuota() {
		own = engine.TokenBuckets(conformance.LongestQuota)
	}
	limiter, err := redislimit.New(client, l.Name, own, append(more, redislimit.Nodes(c.Nodes), redislimit.OnLoss(policy),
		redislimit.MaxKeys(l.Room()), redislimit.Tiers(l.Policies()[1:]...))...)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	env.T.Cleanup(func() {
		_ = limiter.Close()
		_ = client.Close()
	})
	return limiter.Source(), nil
}
