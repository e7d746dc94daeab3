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
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// A Limiter limits any number of keys, together with all limiters of the same store, name and policy on all machines.
// All methods may be called from any goroutine.
type Limiter struct {
	design
	client   *Client
	namer    namer
	routes   atomic.Pointer[routes]
	refusals *refusals
	debts    *shares.Debts[debtID] // debts that must be charged to the store
	debtFile *debtFile             // the file of these debts; nil without DebtFiles
	share    *share                // decides while the store is lost; nil without FailShare
	flight   *flight               // nil unless the policy is engine.Concurrency
	ownQuota Quota
	life     life

	leases        *xsync.Map[string, *lease.Lease]
	firstRequests *engine.Limiter // for the first requests of keys; nil without overdraft

	agreement *agreement // nil for a tier
	tiers     []*Limiter
	sources   []limits.Source

	fallbacks  atomic.Int64
	now        func() int64
	stop       chan struct{}
	wake       chan struct{} // makes keep check at once
	background sync.WaitGroup
	once       sync.Once
}

// New returns a limiter for a policy of any algorithm except batch refill. The name has 1 to 128 characters, without
// braces and control characters.
//
// Limits that differ in the name, the algorithm or the window are independent. Limiters that differ only in other
// numbers share their counts, and each limiter compares the counts with its own numbers. So tokens that were taken
// still count after a change of the numbers.
//
// New returns an error for options that do not fit together, and for a policy whose numbers the store cannot keep.
// [Check] returns the same errors without a client.
func New(client *Client, name string, policy engine.Policy, options ...Option) (*Limiter, error) {
	if client == nil {
		return nil, errors.New("redislimit: New without a client")
	}
	designs, err := newDesigns(name, policy, options)
	if err != nil {
		return nil, err
	}
	a := newAgreement(&client.clientConfig, name, designs)
	file, err := client.openDebts(name, &designs[0], a)
	if err != nil {
		return nil, err
	}
	identity := a.baseSettings + " name=" + name
	l, err := newLimiter(client, name, identity, designs[0], a, file)
	if err != nil {
		file.close()
		return nil, err
	}
	for i, d := range designs[1:] {
		if d.limit == nil {
			l.sources = append(l.sources, source{Quota{limiter: l, policy: d.policy}})
			continue
		}
		tier, err := newLimiter(client, name, fmt.Sprint(identity, " tier=", i+1), d, nil, file.forTier(i+1))
		if err != nil {
			_ = l.Close() // always nil
			return nil, err
		}
		l.tiers, l.sources = append(l.tiers, tier), append(l.sources, tier.Source())
	}
	if file != nil {
		l.takeOver(true)
		file.isReady.Store(true)
	}
	return l, nil
}

// newLimiter returns a limiter without its tiers. If the limiter is itself a tier, the agreement a is nil.
func newLimiter(client *Client, name, identity string, d design, a *agreement, file *debtFile) (*Limiter, error) {
	l := &Limiter{
		design: d, client: client, life: life{identity: identity, numbers: d.sharedNumbers()}, agreement: a, debtFile: file, now: now,
		stop: make(chan struct{}), wake: make(chan struct{}),
	}
	l.ownQuota = Quota{limiter: l, policy: d.policy}
	l.refusals = newRefusals(l.config.maxKeys, l.config.trust)
	l.debts = shares.NewDebts(l.config.maxKeys, file.recorder())
	l.namer = newNamer(&client.clientConfig, l.limit.Kind(), name)
	if l.limit.IsInFlight() {
		l.flight = &flight{entries: xsync.NewMap[*Entry, struct{}](), places: client.limiters.flights.places, limit: l.namer.suffix}
	}
	if err := l.makeLocal(); err != nil {
		l.closeLocal()
		return nil, fmt.Errorf("redislimit: %s: %w", name, err)
	}
	l.updateRoutes()
	if l.terms != nil {
		l.leases = xsync.NewMap[string, *lease.Lease]()
	}
	client.limiters.registry.join(l)
	l.background.Go(l.keep)
	return l, nil
}

// sharedNumbers returns the numbers that distinguish limiters with one [SharedName].
func (d *design) sharedNumbers() string {
	if !d.config.isShared {
		return ""
	}
	return numbers(d.policy, d.config.limit)
}

// Follow makes this limiter the successor of another limiter, which has the same client and name but other numbers.
// Both must have the option [SharedName]. Call Follow before this limiter gets requests for keys of the other limiter.
//
// While the store is lost, all limiters that follow each other have one common share of each key. Follow visits each
// key whose share lacks tokens.
func (l *Limiter) Follow(previous *Limiter) { l.client.limiters.registry.unite(l, previous) }

// now is the clock of limiters and of the breakers that they share: monotonic nanoseconds since the program's start.
func now() int64 { return int64(time.Since(epoch)) }

var epoch = time.Now()

func (l *Limiter) makeLocal() (err error) {
	if l.firstPolicy != (engine.Policy{}) {
		if l.firstRequests, err = engine.New(l.firstPolicy, engine.MaxKeys(l.config.maxKeys)); err != nil {
			return fmt.Errorf("the first requests of keys: %w", err)
		}
	}
	if l.sharePolicy != (engine.Policy{}) {
		if l.share, err = newShare(l.sharePolicy, l.config.maxKeys, l.debts, l.shareOptions()); err != nil {
			return fmt.Errorf("a node's share: %w", err)
		}
	}
	return nil
}

// Close charges the store with what the node owes, for at most the client's timeout, and stops the background work. It
// does not wait for a lost store; [Limiter.Settle] does. Remaining debts, and those of requests in progress, are still
// charged until the client is closed. After that they are lost, unless the limiter has [DebtFiles]. Tokens in hand may
// stay charged. Requests in flight keep their places ([Limiter.Enter]).
func (l *Limiter) Close() error {
	l.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), l.client.timeout)
		_ = l.settleAll(ctx, false) // an error only means that debts remain
		cancel()
		close(l.stop)
		l.background.Wait()
		l.life.isClosed.Store(true)
		l.closeLocal()
		if l.debtFile != nil {
			l.noteLeases(true)
		}
		for _, tier := range l.tiers {
			_ = tier.Close() // always nil
		}
		if l.debtFile != nil && l.debtFile.tier == 0 {
			l.debtFile.Rest()
		}
		if !l.outlive() {
			l.debtFile.close()
		}
	})
	return nil
}

func (l *Limiter) closeLocal() {
	if l.firstRequests != nil {
		_ = l.firstRequests.Close() // always nil
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

type routes struct {
	link   *link
	queues []queue
}

func (r *routes) queue(partition int) *queue { return &r.queues[partition%len(r.queues)] }

// updateRoutes makes new queues if the client has replaced its link. No question is in progress on the old queues,
// because the old link had no store.
func (l *Limiter) updateRoutes() {
	link := l.client.link.Load()
	if old := l.routes.Load(); old != nil && old.link == link {
		return
	}
	r := &routes{link, make([]queue, len(link.breakers))}
	for i := range r.queues {
		r.queues[i] = queue{client: l.client, redis: link.redis, limit: l.limit, breaker: &link.breakers[i], now: l.now}
		if l.config.onLoss != FailOpen {
			r.queues[i].eviction = &l.client.eviction
		}
	}
	l.routes.Store(r)
}

func (l *Limiter) partition(key string) int {
	return int(xxhash.Sum64String(key) % uint64(l.client.partitions))
}

func (l *Limiter) queueOf(key string) *queue { return l.routes.Load().queue(l.partition(key)) }

func (l *Limiter) route(key string, ask script.Ask) (*queue, script.Item) {
	p := l.partition(key)
	return l.routes.Load().queue(p), script.Item{Limit: l.limit, Key: l.namer.name(p, key), Ask: ask}
}

// putOne puts a question about one key into the queue, or returns the reason why it cannot. Without such an error,
// putOne calls onAnswer once, unless the question is given up before it is sent.
func (q *queue) putOne(item script.Item, givenUp *atomic.Bool, onAnswer func(script.Answer, error)) error {
	return q.put(question{items: []script.Item{item}, givenUp: givenUp, onAnswer: func(a []script.Answer, err error) {
		switch {
		case err != nil:
			onAnswer(script.Answer{}, err)
		case a[0].Foreign:
			onAnswer(script.Answer{}, q.client.foreign(item.Key))
		default:
			onAnswer(a[0], nil)
		}
	}})
}

// Allow takes one token and reports whether it was available: see [Limiter.Take]. A leased limiter decides by the
// tokens in hand, without allocating memory, taking a lock or reading a clock.
func (l *Limiter) Allow(key string) bool {
	if l.terms != nil {
		if keyLease, ok := l.leases.Load(key); ok {
			switch v, renew := keyLease.Take(1, l.now); {
			case v == lease.Admitted && renew:
				l.renew(keyLease, key, 1)
				return true
			case v == lease.Admitted:
				return true
			case renew: // the renewal carries the request
				d, _ := l.takeStrict(context.Background(), &l.ownQuota, key, 1, keyLease, nil)
				return d.Allowed
			}
		}
	}
	d, _ := l.Take(context.Background(), key, 1)
	return d.Allowed
}

// Take takes n tokens from the key, all or none. If n is 0, the request is allowed; if n is above the limit, it is
// always refused. In both cases, the store is not asked, except to charge a refusal ([ChargeRefusals]).
//
// A strict limiter waits for the store's answer until the client's [Timeout] is over or the context is done. A leased
// limiter waits in two cases: the request is larger than a lease, or the key's overdraft is used up while the store has
// plenty of tokens.
//
// For a short time after a refusal, limiters of both modes refuse similar requests without asking the store
// ([TrustRefusals]). Remaining, RetryAfter and ResetAfter then come from the store's last answer.
//
// If the store fails and the policy is [FailClosed], the error is [ErrStore] with its cause. Take may also return the
// context's error.
func (l *Limiter) Take(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	return l.take(ctx, &l.ownQuota, key, n, nil)
}

// take is Take under a quota. If r is not nil, take notes in r where the tokens were taken.
func (l *Limiter) take(ctx context.Context, q *Quota, key string, n uint64, r *receipt) (engine.Decision, error) {
	if d, ok := l.trivialDecision(q, n); ok {
		r.setOrigin(fromStore)
		return d, nil
	}
	if l.terms == nil {
		return l.takeStrict(ctx, q, key, n, nil, r)
	}
	d, ok, carrier := l.takeLocal(key, n)
	if ok {
		r.setOrigin(fromLease)
		return d, nil
	}
	return l.takeStrict(ctx, q, key, n, carrier, r)
}

// trivialDecision returns a decision that does not depend on the key. ok is false if the key must be looked up.
func (l *Limiter) trivialDecision(q *Quota, n uint64) (d engine.Decision, ok bool) {
	limit := q.policy.Limit()
	switch {
	case n > limit && (limit == 0 || l.config.limit.Refusals == engine.ChargeNothing):
		return engine.Decision{Limit: limit, RetryAfter: engine.Never}, true
	case n == 0:
		return engine.Decision{Allowed: true, Limit: limit, Remaining: limit}, true
	}
	return d, false
}

// Refund gives back n tokens that were taken from the key. A leased limiter adds them to its tokens in hand, and a
// strict limiter gives them to the store. While the store is lost, they go to the node's share.
//
// Refunds never give a key more than its limit. But do not give back more tokens than were taken, because a node does
// not know what others took. With [FailOpen], a request that was admitted without the store has taken nothing.
func (l *Limiter) Refund(ctx context.Context, key string, n uint64) error {
	return l.refund(ctx, &l.ownQuota, key, n)
}

func (l *Limiter) refund(ctx context.Context, q *Quota, key string, n uint64) error {
	if l.refundLocally(q, key, n) {
		return nil
	}
	defer l.refusals.drop(key)
	_, err := l.ask(ctx, key, q.refundAsk(n))
	return err
}

func (q *Quota) refundAsk(n uint64) script.Ask {
	return script.Ask{Returned: min(n, q.policy.Limit()), Window: script.AnyWindow, Quota: q.numbers}
}

// refundLocally gives back tokens on this node. It returns false if they must go to the store instead.
func (l *Limiter) refundLocally(q *Quota, key string, n uint64) bool {
	n = min(n, q.policy.Limit())
	if n == 0 {
		return true
	}
	if l.isLost(key) {
		if l.share != nil {
			l.share.refund(key, q, n)
		}
		return true
	}
	if l.terms != nil {
		if keyLease, ok := l.leases.Load(key); ok && keyLease.Refund(n) {
			l.refusals.drop(key)
			return true
		} else if !ok && l.refundFirst(key, n) {
			l.refusals.drop(key)
			return true
		}
	}
	return false
}

// refundFirst gives back tokens that a key's first requests took. It returns false if a lease has taken over the debt
// for these tokens, even if the lease no longer exists.
func (l *Limiter) refundFirst(key string, n uint64) (isDone bool) {
	if l.firstRequests == nil {
		return false
	}
	k := l.firstRequests.Key(key)
	// While Compute runs, no new lease can take over the debt for these tokens.
	l.leases.Compute(key, func(keyLease *lease.Lease, exists bool) (*lease.Lease, xsync.ComputeOp) {
		if owed, _ := l.firstRequests.Owed(k); !exists && n <= owed {
			l.firstRequests.Refund(k, n)
			isDone = true
		}
		return keyLease, xsync.CancelOp
	})
	return isDone
}
