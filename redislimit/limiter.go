package redislimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/puzpuzpuz/xsync/v4"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// A Limiter holds each of any number of keys against one limit, together with all limiters of the same store,
// name and policy, on whatever machine. Make one with [New]. All its methods may be called from any goroutine.
type Limiter struct {
	store  *Store
	config config
	policy engine.Policy
	plan   *script.Plan
	prefix [2]string // of the keys: before the partition, and after it
	lanes  []lane
	share  *share // decides while the store is lost; nil without that policy

	terms  *lease.Terms // nil where the store is asked for every request
	leases *xsync.Map[string, *lease.Lease]
	cold   *engine.Limiter // the first requests of keys; nil without overdraft
	first  uint64          // how many those are

	lost atomic.Int64
	now  func() int64
	stop chan struct{}
	done sync.WaitGroup
	once sync.Once
}

const (
	ahead = 10 * time.Millisecond  // τ
	life  = 100 * time.Millisecond // L
)

// New returns a limiter of the policy: a token bucket, a fixed window, a sliding window or a sliding log. name
// is part of the keys' names in the store, as are the policy's numbers: limits of different names or numbers have
// nothing in common. It is 1 to 128 characters without braces.
//
// What does not fit, and a policy whose numbers the store cannot hold, are errors that say so.
func New(store *Store, name string, policy engine.Policy, options ...Option) (*Limiter, error) {
	if store == nil {
		return nil, errors.New("redislimit: New without a store")
	}
	if name == "" || len(name) > 128 {
		return nil, fmt.Errorf("redislimit: New: a name of %d characters, %.140q: want 1 to 128", len(name), name)
	}
	c := config{nodes: 4, overdraft: 8, maxKeys: 100_000}
	for i, option := range options {
		if option == nil {
			return nil, fmt.Errorf("redislimit: %s: option %d of %d is nil", name, i+1, len(options))
		}
		if err := option(&c); err != nil {
			return nil, err
		}
	}
	l := &Limiter{store: store, config: c, policy: policy, stop: make(chan struct{})}
	l.now = now
	var err error
	if l.plan, err = script.NewPlan(policy); err != nil {
		return nil, fmt.Errorf("redislimit: %s: %w", name, err)
	}
	if err := l.chooseMode(name); err != nil {
		return nil, err
	}
	if c.loss == Share {
		if l.share, err = newShare(policy, c.nodes, c.maxKeys); err != nil {
			l.closeLocal()
			return nil, fmt.Errorf("redislimit: %s: a node's share: %w", name, err)
		}
	}
	l.prefix = [2]string{store.prefix + ":{p", "}:" + l.plan.Hash() + ":" + name + ":"}
	l.lanes = make([]lane, len(store.breakers))
	for i := range l.lanes {
		l.lanes[i] = lane{store: store, plan: l.plan, breaker: &store.breakers[i], now: l.now}
	}
	if l.terms != nil {
		l.done.Go(l.keep)
	}
	return l, nil
}

// now is the time by which limiters, and the breakers that they share, count: monotonic, from when the
// program began.
func now() int64 { return int64(time.Since(epoch)) }

var epoch = time.Now()

// chooseMode makes what leases need, where leases are wanted.
func (l *Limiter) chooseMode(name string) error {
	rate := l.policy.Rate()
	first := l.config.overdraft / 4
	terms := &lease.Terms{
		Limit: l.policy.Limit(), PerSecond: rate.Tokens() / rate.Period().Seconds(), Nodes: l.config.nodes,
		Overdraft: l.config.overdraft - first, Ahead: ahead, Life: life,
	}
	algorithm := l.policy.Algorithm()
	suits := terms.Suits() && (algorithm == engine.AlgorithmTokenBucket || algorithm == engine.AlgorithmFixedWindow)
	if l.config.mode == Leased && !suits {
		return fmt.Errorf("redislimit: %s: leases do not suit %v with %d nodes: want a token bucket or a fixed window of %.0f/s and a limit of %d at least, or Auto",
			name, l.policy, l.config.nodes, 1/ahead.Seconds(), 4*l.config.nodes)
	}
	if l.config.mode == Strict || !suits {
		return nil
	}
	// The store remembers one limit of debt.
	if most := 2 * (l.policy.Limit() / uint64(l.config.nodes)); l.config.overdraft > most {
		return fmt.Errorf("redislimit: %s: Overdraft(%d): want at most %d, twice a node's share of %v", name, l.config.overdraft, most, l.policy)
	}
	l.plan, l.terms = l.plan.Slowed(), terms
	l.leases = xsync.NewMap[string, *lease.Lease]()
	if l.first = first; first == 0 {
		return nil
	}
	// What the nodes admit of keys that never come to be leased is a 1,024th of the rate, which the slowed plan
	// leaves.
	var err error
	forgiven := engine.Per(rate.Tokens()/1024/float64(l.config.nodes), rate.Period())
	l.cold, err = engine.New(engine.TokenBucket(forgiven, l.first), engine.MaxKeys(l.config.maxKeys))
	if err != nil {
		return fmt.Errorf("redislimit: %s: the first requests of keys: %w", name, err)
	}
	return nil
}

// Close stops what the limiter does in the background. Tokens that it has in hand stay charged.
func (l *Limiter) Close() error {
	l.once.Do(func() {
		close(l.stop)
		l.done.Wait()
		l.closeLocal()
	})
	return nil
}

func (l *Limiter) closeLocal() {
	if l.cold != nil {
		_ = l.cold.Close() // always nil
	}
	if l.share != nil {
		_ = l.share.Close() // always nil
	}
}

// Mode returns [Strict] or [Leased].
func (l *Limiter) Mode() Mode {
	if l.terms != nil {
		return Leased
	}
	return Strict
}

func (l *Limiter) partition(key string) int {
	return int(xxhash.Sum64String(key) % uint64(l.store.partitions))
}

// laneOf returns the lane of a key.
func (l *Limiter) laneOf(key string) *lane { return &l.lanes[l.partition(key)%len(l.lanes)] }

// lane returns the lane of a key, and what the key is called in the store.
func (l *Limiter) lane(key string) (*lane, string) {
	p := l.partition(key)
	number := [...]byte{'0' + byte(p/1000), '0' + byte(p/100%10), '0' + byte(p/10%10), '0' + byte(p%10)}
	return &l.lanes[p%len(l.lanes)], l.prefix[0] + string(number[:]) + l.prefix[1] + key
}

// Allow takes one token and reports whether it was there. A leased limiter answers from what it has in hand
// without allocating, without a lock and without reading a clock; [Limiter.Take] says more.
func (l *Limiter) Allow(key string) bool {
	if l.terms != nil {
		if held, ok := l.leases.Load(key); ok {
			if v, renew := held.Take(1, l.now); v == lease.Admitted {
				if renew {
					l.renew(held, key)
				}
				return true
			} else if renew {
				l.renew(held, key)
			}
		}
	}
	d, _ := l.Take(context.Background(), key, 1)
	return d.Allowed
}

// Take takes n tokens from the key, all or none. n = 0 takes nothing and is allowed; n above the limit is
// refused for ever, and of a leased fixed window above 1,023 parts in 1,024 of it. Neither asks the store.
//
// A strict limiter asks the store, and waits for the store's timeout or until the context is done, whichever
// is sooner. A leased one asks only what it cannot know: requests larger than a lease, and a key whose
// overdraft is used up while there is plenty in the store. Remaining, RetryAfter and ResetAfter are then as of the
// store's last answer.
//
// The error is [ErrStore] with its cause if the store fails and the policy is [Closed], or the context's.
func (l *Limiter) Take(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	limit := l.plan.Limit()
	switch {
	case n > limit:
		return engine.Decision{Limit: limit, RetryAfter: engine.Never}, nil
	case n == 0:
		return engine.Decision{Allowed: true, Limit: limit, Remaining: limit}, nil
	case l.terms != nil:
		if d, known := l.local(key, n); known {
			return d, nil
		}
	}
	return l.strict(ctx, key, n)
}

// Refund gives n tokens back that were taken from the key; give no more than that, because a node does not
// know what others took. A key never has more than the limit. A leased limiter keeps them in hand; a strict one asks the store. What is refunded while the
// store is lost goes to the node's share.
func (l *Limiter) Refund(ctx context.Context, key string, n uint64) error {
	n = min(n, l.plan.Limit())
	if n == 0 {
		return nil
	}
	if l.isLost(key) {
		if l.share != nil {
			l.share.Refund(key, n)
		}
		return nil
	}
	if l.terms != nil {
		if held, ok := l.leases.Load(key); ok && held.Refund(n) {
			return nil
		} else if !ok && l.cold != nil && n <= l.first {
			l.cold.Refund(key, n)
			return nil
		}
	}
	_, err := l.ask(ctx, key, script.Ask{Returned: n, Window: script.AnyWindow})
	return err
}
