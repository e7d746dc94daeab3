package redislimit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// renewalsPerLife is how often a node renews a place within its lifetime. With 3, the node still has the place after
// two lost renewals in a row.
const renewalsPerLife = 3

// PlaceLife sets how long the store keeps the place of a request in flight without a renewal: 1 second to 1 hour, 10
// seconds by default. So the places of a node that dies are free after that time.
//
// A node renews a place three times in its lifetime. If the node stops for two thirds of the lifetime, it may lose
// places of requests that continue. All nodes should use the same value. The option is only for [engine.Concurrency].
func PlaceLife(d time.Duration) Option {
	return func(c *config) error {
		if d < time.Second || d > time.Hour {
			return fmt.Errorf("redislimit: PlaceLife(%v): want 1s to 1h", d)
		}
		c.limit.Life = d
		return nil
	}
}

// flight contains the requests that a limiter of [engine.Concurrency] has in flight.
type flight struct {
	entries  *xsync.Map[*Entry, struct{}]
	places   *places
	limit    string       // identifies the limit in places
	deciding atomic.Int64 // requests that are being decided: each may soon have an entry
}

// places counts the places that all limiters of a client have taken. When a limiter is replaced, its places still
// count.
type places struct{ counts *xsync.Map[placeKey, uint64] }

type placeKey struct{ limit, key string }

func newPlaces() *places { return &places{xsync.NewMap[placeKey, uint64]()} }

// add adds n to a key's places, unless the sum would exceed maxPlaces.
func (p *places) add(key placeKey, n, maxPlaces uint64) (added bool) {
	p.counts.Compute(key, func(count uint64, _ bool) (uint64, xsync.ComputeOp) {
		if added = n <= maxPlaces && count <= maxPlaces-n; !added {
			return count, xsync.CancelOp
		}
		return count + n, xsync.UpdateOp
	})
	return added
}

func (p *places) remove(key placeKey, n uint64) {
	p.counts.Compute(key, func(count uint64, _ bool) (uint64, xsync.ComputeOp) {
		if count <= n {
			return 0, xsync.DeleteOp
		}
		return count - n, xsync.UpdateOp
	})
}

func (f *flight) add(key string, n, maxPlaces uint64) (added bool) {
	return f.places.add(placeKey{f.limit, key}, n, maxPlaces)
}

func (f *flight) remove(key string, n uint64) { f.places.remove(placeKey{f.limit, key}, n) }

// An Entry contains the places of one request in flight, from [Limiter.Enter] until Release. Its methods may be called
// from any goroutine and do not wait. After the first call of Release or Settle, they do nothing. The zero Entry has no
// places.
type Entry struct {
	claim   lease.Claim
	limiter *Limiter // nil for an entry without places
	key     string
	n       uint64
	id      int64 // identifies the places in the store; AnyWindow until the store knows them; renewals change it
	due     int64 // when the places must be renewed; each renewal changes it
	end     int64 // when the lifetime of the policy is over
}

var _ limits.Held = (*Entry)(nil)

// Enter takes n places of the key, all or none, until the entry is released. It returns an error if the limiter's
// policy is not an [engine.Concurrency]. The decision and the error are those of [Limiter.Take]. The entry is never
// nil.
//
// The node renews the places ([PlaceLife]) until they are released, but not longer than the policy's lifetime. It does
// so even after [Limiter.Close] and [Client.Close].
//
// While the store is lost, [FailShare] lets a node have up to its share of a key's places in flight: limit/[Nodes],
// rounded down, or the fraction of [LocalShare]. Places that it took earlier count, too. With [FailOpen], places are
// not counted.
func (l *Limiter) Enter(ctx context.Context, key string, n uint64) (*Entry, engine.Decision, error) {
	if l.flight == nil {
		return new(Entry), engine.Decision{}, errors.New("redislimit: Enter: the limiter does not count requests in " +
			"flight: want one of engine.Concurrency")
	}
	l.addDeciding(1)
	defer l.addDeciding(-1)
	var r receipt
	d, err := l.ownQuota.take(ctx, key, n, &r)
	if e := l.newEntry(key, n, d, r); e != nil {
		return e, d, err
	}
	return new(Entry), d, err
}

// addDeciding adds n, which may be negative, to the number of requests that are being decided.
func (l *Limiter) addDeciding(n int64) {
	if l.flight != nil {
		l.flight.deciding.Add(n)
	}
}

func (l *Limiter) newEntry(key string, n uint64, d engine.Decision, r receipt) *Entry {
	if !d.Allowed || n == 0 || r.origin == fromNowhere {
		return nil
	}
	now := l.now()
	e := &Entry{limiter: l, key: key, n: n, id: script.AnyWindow, due: now, end: now + int64(l.policy.Window())}
	if r.origin == fromStore {
		e.id, e.due = r.window, now+l.renewEvery()
		l.flight.add(key, n, 1<<63)
	}
	l.flight.entries.Store(e, struct{}{})
	l.outlive()
	return e
}

func (l *Limiter) renewEvery() int64 { return int64(l.limit.Life()) / renewalsPerLife }

// takePlaces decides a request that the store did not decide, by the node's share of the places. If reserve is true,
// the places count until they are released.
func (l *Limiter) takePlaces(key string, q *Quota, n uint64, reserve bool) engine.Decision {
	share := uint64(float64(q.policy.Limit()) / l.divisor())
	if !l.flight.add(key, n, share) {
		return engine.Decision{RetryAfter: breaker.ProbeEvery}
	}
	if !reserve {
		l.flight.remove(key, n)
	}
	count, _ := l.flight.places.counts.Load(placeKey{l.flight.limit, key})
	return engine.Decision{Allowed: true, Remaining: share - min(count, share), ResetAfter: l.limit.Life()}
}

// Settle does the same as Release, because the cost of a request does not change its places.
func (e *Entry) Settle(uint64) (lost uint64) {
	e.Release()
	return 0
}

// Charge does nothing and returns n, because only places count for this limit.
func (e *Entry) Charge(n uint64) (lost uint64) { return n }

// Taken returns how many places the request has, or had.
func (e *Entry) Taken() uint64 { return e.n }

// Release gives the places back. It returns false if an earlier call has given them back already.
func (e *Entry) Release() bool {
	first, send := e.settle()
	if send {
		e.freePlaces()
	}
	return first
}

func (e *Entry) settle() (first, send bool) {
	if e.limiter == nil {
		return false, false
	}
	if first, send = e.claim.Settle(); first {
		e.limiter.flight.entries.Delete(e)
		e.limiter.flight.remove(e.key, e.n)
	}
	return first, send
}

// freePlaces reports to the store that the places are free. If the report is lost, they become free when their lifetime
// ends.
func (e *Entry) freePlaces() { e.limiter.freePlaces(e.key, e.n, e.id) }

func (l *Limiter) freePlaces(key string, n uint64, id int64) {
	if id <= script.AnyWindow {
		return // the store does not know the places
	}
	queue, item := l.route(key, script.Ask{Returned: n, Window: id})
	_ = queue.putOne(item, nil, func(script.Answer, error) {})
}

// refundPlaces gives back the places of a request that another limit refused, and waits for the store.
func (l *Limiter) refundPlaces(ctx context.Context, key string, n uint64, r receipt) error {
	if r.origin == fromShare {
		l.flight.remove(key, n)
	}
	if r.origin != fromStore || r.window <= script.AnyWindow || l.isLost(key) {
		return nil
	}
	_, err := l.ask(ctx, key, script.Ask{Returned: n, Window: r.window})
	return err
}

func (l *Limiter) renewPlaces() {
	now := l.now()
	for e := range l.flight.entries.All() {
		switch {
		case now >= e.end:
			e.Release()
		case l.isLost(e.key):
		case e.claim.Renew():
			if now < e.due {
				e.endRenewal(e.id, e.due)
				continue
			}
			e.renew(now)
		}
	}
}

// renew renews the places of the entry. The caller has begun a renewal of its claim.
func (e *Entry) renew(now int64) {
	l := e.limiter
	queue, item := l.route(e.key, script.Ask{Debt: e.n, Window: e.id})
	err := queue.putOne(item, nil, func(a script.Answer, err error) {
		if err != nil {
			e.endRenewal(e.id, e.due) // renew them again at once
			return
		}
		e.endRenewal(a.Window, now+l.renewEvery())
	})
	if err != nil {
		e.endRenewal(e.id, e.due)
	}
}

func (e *Entry) endRenewal(id, due int64) {
	e.id, e.due = id, due
	if e.claim.Renewed() {
		e.freePlaces()
	}
}
