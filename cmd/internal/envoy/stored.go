package envoy

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// A Loss says how requests are answered while the store is lost.
type Loss uint8

const (
	// Closed makes the request fail, as in envoyproxy/ratelimit. Envoy's failure_mode_deny then decides whether the
	// request passes.
	Closed Loss = iota
	// Share makes each replica admit its share of the limits. The returning store is charged for the admitted hits.
	Share
	// Open makes every limit admit everything.
	Open
)

type storeTable struct {
	limiter *redislimit.Limiter // returns an error if the store fails
	shares  *redislimit.Limiter // decides by a share if the store fails; nil without Share
	onLoss  Loss
}

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

func (t storeTable) reset(ctx context.Context, c counter) error {
	err := t.limiter.Reset(ctx, c.text)
	if t.shares != nil && t.shares != t.limiter {
		err = errors.Join(err, t.shares.Reset(ctx, c.text))
	}
	return err
}

func (t storeTable) stats() engine.Stats { return engine.Stats{} } // the store keeps its own statistics

// settle charges the store with the hits that the replica has admitted without it.
func (t storeTable) settle(ctx context.Context) error {
	if t.shares != nil && t.shares != t.limiter {
		return errors.Join(t.limiter.Settle(ctx), t.shares.Settle(ctx))
	}
	return t.limiter.Settle(ctx)
}

func (t storeTable) close() error {
	err := t.limiter.Close()
	if t.shares != nil && t.shares != t.limiter {
		err = errors.Join(err, t.shares.Close())
	}
	return err
}

// follow makes the replica's shares also count what a previous table has counted for the same counters.
func (t storeTable) follow(previous storeTable) {
	if t.shares != nil && previous.shares != nil {
		t.shares.Follow(previous.shares)
	}
}

// limiterFor returns the policy of the limit l, and the limiter that decides by shares. Without that limiter, it
// returns the other limiter of the table. It is for a table that also counts hits beyond limits.
func (t storeTable) limiterFor(l config.Limit) (*redislimit.Limiter, engine.Policy) {
	if t.shares != nil {
		return t.shares, l.Policy()
	}
	return t.limiter, l.Policy()
}

// openInStore returns a function that makes tables in the store. If this package compares a count with the limit, the
// count must include all replicas, so every decision calls the store. Only token buckets may be leased, because the
// store itself compares them with the limit.
func openInStore(o Options) func(config.Limit, engine.Policy) (table, error) {
	return func(kind config.Limit, policy engine.Policy) (table, error) {
		// The name has no numbers of the limit, so that hits still count when the numbers change.
		name := fmt.Sprintf("envoy %s %s", kind.Algorithm, kind.Length())
		if kind.Algorithm == engine.AlgorithmTokenBucket {
			name = fmt.Sprintf("envoy %s", kind.Algorithm)
		}
		store, role := o.Store, ""
		if kind.Window == time.Second && o.PerSecondStore != nil {
			store, role = o.PerSecondStore, "per second"
		}
		options := []redislimit.Option{redislimit.SharedName(), redislimit.InMode(redislimit.Strict)}
		if o.Replicas > 0 {
			options = append(options, redislimit.Nodes(o.Replicas))
		}
		if o.Replicas > 0 && kind.Algorithm == engine.AlgorithmTokenBucket {
			options = append(options, redislimit.InMode(redislimit.Auto))
		}
		if o.Debts != "" { // even if OnLoss is not Share: it may have been Share before a restart
			hash := fnv.New64a()
			_, _ = fmt.Fprintf(hash, "%q %v %s", name, policy, role) // never an error
			options = append(options, redislimit.DebtFiles(fmt.Sprintf("%s-%016x", o.Debts, hash.Sum64())))
		}
		withLoss := func(p redislimit.FailurePolicy) []redislimit.Option {
			return append(options[:len(options):len(options)], redislimit.OnLoss(p))
		}
		t := storeTable{onLoss: o.OnLoss}
		var err error
		if o.OnLoss == Share {
			if t.shares, err = redislimit.New(store, name, policy, withLoss(redislimit.FailShare)...); err != nil {
				return nil, err
			}
			if t.shares.Mode() == redislimit.Leased { // otherwise two limiters would have leases for the same key
				t.limiter = t.shares
				return t, nil
			}
		}
		if t.limiter, err = redislimit.New(store, name, policy, withLoss(redislimit.FailClosed)...); err != nil {
			if t.shares != nil {
				err = errors.Join(err, t.shares.Close())
			}
			return nil, err
		}
		return t, nil
	}
}

// decideWithoutStore decides a check for which the store did not answer. As OnLoss says, it admits the check, decides
// by a share, or returns cause. The number of hits to take is n. If n is 0, it only reads the counter.
func (c *check) decideWithoutStore(ctx context.Context, now time.Time, n uint64, cause error) error {
	t, ok := c.table.(storeTable)
	if !ok || t.onLoss == Closed || !errors.Is(cause, redislimit.ErrStore) {
		return cause
	}
	d := engine.Decision{Allowed: n <= c.capacity(), Limit: c.capacity(), Remaining: c.capacity()}
	if t.onLoss == Share {
		var err error
		if d, err = c.decideByShare(ctx, t, n, cause); err != nil {
			return err
		}
	}
	c.withoutStore = true
	c.isOver = !d.Allowed && (n > 0 || c.overdraws())
	if c.remaining, c.reset, c.charged = d.Remaining, d.ResetAfter, 0; c.reset == 0 && d.RetryAfter != engine.Never {
		c.reset = d.RetryAfter
	}
	c.after = d.Limit - d.Remaining
	c.before = c.after - min(n, c.after)
	if c.isOver {
		c.before, c.after = c.after, c.after+n
	}
	if c.limit.Algorithm == engine.AlgorithmFixedWindow {
		c.reset = c.limit.UntilNext(now)
	}
	return nil
}

// decideByShare decides a check by the replica's share of the limit.
func (c *check) decideByShare(ctx context.Context, t storeTable, n uint64, cause error) (d engine.Decision, err error) {
	limiter, policy := t.limiterFor(c.limit)
	quota, err := limiter.Quota(policy)
	if err != nil {
		return d, err
	}
	d, err = quota.Fallback(c.counter.text, n, cause)
	if err == nil && n > 0 && !d.Allowed && c.overdraws() {
		_, err = quota.Charge(ctx, c.counter.text, n)
	}
	return d, err
}

func (c *check) overdraws() bool { return c.isReport || c.rule != nil && c.rule.Overdraw }
