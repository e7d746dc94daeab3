package limitertest

import (
	"context"
	"errors"
	"math"
	"math/big"
	"sync"
	"testing"
	"time"
)

// A bucket is a limiter with an exact but slow token bucket for each key. It can be given a fault: see faults_test.go.
type bucket struct {
	limit Limit
	fault string

	mu   sync.Mutex
	keys map[string]*level
	came int
	kept time.Time // when keys with full buckets were forgotten last
	seeded
}

// A level is how much of a key's bucket is used, in units of token x period.
type level struct {
	used  *big.Int
	at    time.Time
	turns []*turn // reservations whose turn has not come, in the order of their turns
}

type turn struct {
	at       time.Time
	units    *big.Int
	canceled bool
}

func newBucket(l Limit, fault string) *bucket {
	return &bucket{limit: l, fault: fault, keys: map[string]*level{}}
}

func integer[T int64 | uint64 | time.Duration](n T) *big.Int {
	if n < 0 {
		return big.NewInt(int64(n))
	}
	return new(big.Int).SetUint64(uint64(n))
}

func (b *bucket) units(n int64) *big.Int { return new(big.Int).Mul(integer(n), integer(b.limit.Per)) }

func (b *bucket) burst() *big.Int {
	return new(big.Int).Mul(integer(b.limit.Burst), integer(b.limit.Per))
}

// key returns the level of a key at an instant: now, or the latest instant so far if it is later.
func (b *bucket) key(name string, now time.Time) *level {
	l, ok := b.keys[name]
	if !ok {
		b.forget(now)
		l = &level{used: new(big.Int), at: now}
		b.keys[name] = l
	}
	if now.After(l.at) {
		l.used.Sub(l.used, new(big.Int).Mul(integer(b.limit.Tokens), integer(now.Sub(l.at))))
		if l.at = now; l.used.Sign() < 0 {
			l.used.SetInt64(0)
		}
	}
	for len(l.turns) > 0 && !l.turns[0].at.After(now) {
		l.turns = l.turns[1:]
	}
	return l
}

// forget drops keys whose buckets are full. It does this at most once in the time of a token, because no bucket becomes
// full sooner.
func (b *bucket) forget(now time.Time) {
	token := b.limit.Per / time.Duration(b.limit.Tokens)
	if b.came++; b.came%1000 != 999 || now.Sub(b.kept) < token || b.fault == "keys are never forgotten" {
		return
	}
	b.kept = now
	for name, l := range b.keys {
		passed := new(big.Int).Mul(integer(b.limit.Tokens), integer(now.Sub(l.at)))
		if now.After(l.at) && passed.Cmp(l.used) >= 0 {
			delete(b.keys, name)
		}
	}
}

// wait returns how long it takes until the bucket has the given number of units.
func (b *bucket) wait(l *level, units *big.Int) time.Duration {
	lack := new(big.Int).Add(l.used, units)
	if lack.Sub(lack, b.burst()); lack.Sign() <= 0 {
		return 0
	}
	lack.Add(lack, integer(b.limit.Tokens-1)).Div(lack, integer(b.limit.Tokens))
	if !lack.IsInt64() {
		return math.MaxInt64
	}
	return time.Duration(lack.Int64())
}

func (b *bucket) Take(key string, n int64) Decision {
	if b.fault != "" {
		if d, done := b.faulty(key, n); done {
			return d
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take(key, n, time.Now())
}

func (b *bucket) TakeAt(key string, n int64, at time.Time) Decision {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.take(key, n, at)
	if b.fault == "a late caller sets the clock back" {
		b.keys[key].at = at
	}
	return d
}

func (b *bucket) take(key string, n int64, now time.Time) Decision {
	if n <= 0 {
		return Decision{Allowed: true}
	}
	l, units := b.key(key, now), b.units(n)
	wait := b.wait(l, units)
	switch {
	case units.Cmp(b.burst()) > 0:
		return Decision{RetryAfter: -1}
	case wait > 0:
		return Decision{RetryAfter: wait + l.at.Sub(now)}
	}
	l.used.Add(l.used, units)
	return Decision{Allowed: true}
}

func (b *bucket) Refund(key string, n int64) {
	if n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.key(key, time.Now())
	if l.used.Sub(l.used, b.units(n)); l.used.Sign() < 0 && b.fault != "a refund fills beyond the burst" {
		l.used.SetInt64(0)
	}
}

func (b *bucket) Reserve(key string, n int64) (wait time.Duration, cancel func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	l := b.key(key, now)
	if wait = b.wait(l, b.units(n)); b.units(n).Cmp(b.burst()) > 0 {
		return 0, nil, false
	}
	own := &turn{now.Add(wait), b.units(n), false}
	l.used.Add(l.used, own.units)
	l.turns = append(l.turns, own)
	return wait, func() { b.cancel(key, own) }, true
}

// cancel gives up a turn. The tokens of the turn come back when no later turn is left.
func (b *bucket) cancel(key string, own *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.key(key, time.Now())
	switch own.canceled = true; b.fault {
	case "a canceled turn stays taken":
		return
	case "a canceled turn with others behind it is lost":
		if len(l.turns) > 0 && l.turns[len(l.turns)-1] != own {
			own.canceled = false
			return
		}
	case "a canceled turn comes back at once":
		l.used.Sub(l.used, own.units)
		own.units = new(big.Int)
		return
	}
	for i := len(l.turns) - 1; i >= 0 && l.turns[i].canceled; i-- {
		l.used.Sub(l.used, l.turns[i].units)
		l.turns = l.turns[:i]
	}
}

func (b *bucket) Wait(ctx context.Context, key string, n int64) error {
	wait, cancel, ok := b.Reserve(key, n)
	if !ok {
		return errors.New("more than the burst")
	}
	if by, ok := ctx.Deadline(); ok && b.fault == "a wait without enough time stays taken" && time.Until(by) < wait {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		if b.fault != "a wait that gives up stays taken" {
			cancel()
		}
		return ctx.Err()
	}
}

// A counting is a plain limiter for one of the promises with windows. It stores all tokens that it admitted.
type counting struct {
	mu    sync.Mutex
	limit Limit
	// The function count returns how many tokens of the log still count as taken at an instant.
	count func(c *counting, log []Event, now int64) uint64
	most  uint64
	keys  map[string][]Event
	swept int64
}

func newCounting(l Limit, most uint64, count func(*counting, []Event, int64) uint64) *counting {
	return &counting{limit: l, count: count, most: most, keys: map[string][]Event{}}
}

func (c *counting) Take(key string, n int64) Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, log := time.Now().UnixNano(), c.keys[key]
	if c.swept < now-int64(time.Hour) {
		for name, log := range c.keys {
			if age := now - int64(log[len(log)-1].At); age > 2*int64(c.limit.Per)*int64(c.most) {
				delete(c.keys, name)
			}
		}
		c.swept = now
	}
	switch {
	case n <= 0:
		return Decision{Allowed: true}
	case uint64(n) > c.most:
		return Decision{RetryAfter: -1}
	case c.count(c, log, now)+uint64(n) > c.most:
		no, yes := now, now+2*int64(c.limit.Per)*int64(c.most)
		for yes-no > 1 {
			if middle := no + (yes-no)/2; c.count(c, log, middle)+uint64(n) <= c.most {
				yes = middle
			} else {
				no = middle
			}
		}
		return Decision{RetryAfter: time.Duration(yes - now)}
	}
	c.keys[key] = append(log, Event{At: time.Duration(now), N: n})
	return Decision{Allowed: true}
}

// taken returns the sum of the tokens that were admitted in [from, to).
func taken(log []Event, from, to int64) (sum uint64) {
	for i := len(log) - 1; i >= 0 && int64(log[i].At) >= from; i-- {
		if int64(log[i].At) < to {
			sum += uint64(log[i].N)
		}
	}
	return sum
}

func alignedWindow(l Limit) *counting {
	return newCounting(l, l.Tokens, func(c *counting, log []Event, now int64) uint64 {
		return taken(log, now-now%int64(c.limit.Per), math.MaxInt64)
	})
}

func fixedWindow(l Limit) *counting {
	return newCounting(l, l.Tokens, func(c *counting, log []Event, now int64) uint64 {
		start := int64(math.MinInt64)
		for _, e := range log {
			if int64(e.At) >= start+int64(c.limit.Per) || start == math.MinInt64 {
				start = int64(e.At)
			}
		}
		if now >= start+int64(c.limit.Per) {
			return 0
		}
		return taken(log, start, math.MaxInt64)
	})
}

func slidingExact(l Limit) *counting {
	return newCounting(l, l.Tokens, func(c *counting, log []Event, now int64) uint64 {
		return taken(log, now-int64(c.limit.Per)+1, math.MaxInt64)
	})
}

func slidingEstimate(l Limit) *counting {
	return newCounting(l, l.Tokens, func(c *counting, log []Event, now int64) uint64 {
		per := int64(c.limit.Per)
		start := now - now%per
		share := integer(taken(log, start-per, start))
		share.Mul(share, integer(start+per-now)).Div(share, integer(per))
		return share.Uint64() + taken(log, start, math.MaxInt64)
	})
}

// A batches is a limiter with plain buckets that get their tokens at multiples of the period.
type batches struct {
	mu    sync.Mutex
	limit Limit
	keys  map[string]*batch
	came  int
}

type batch struct {
	left *big.Int
	last int64 // number of the latest refill; refills are counted since 1970
}

func (b *batches) Take(key string, n int64) Decision {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now().UnixNano()
	index := now / int64(b.limit.Per)
	of := b.keys[key]
	if of == nil {
		if b.came++; b.came%1000 == 999 {
			for name, other := range b.keys {
				if other.last == index { // no tokens have come back
					continue
				}
				if back := new(big.Int).Mul(integer(index-other.last), integer(b.limit.Tokens)); back.Cmp(integer(b.limit.Burst)) >= 0 {
					delete(b.keys, name)
				}
			}
		}
		of = &batch{integer(b.limit.Burst), index}
		b.keys[key] = of
	}
	back := new(big.Int).Mul(integer(index-of.last), integer(b.limit.Tokens))
	if of.left.Add(of.left, back); of.left.Cmp(integer(b.limit.Burst)) > 0 {
		of.left = integer(b.limit.Burst)
	}
	of.last = index
	switch lack := new(big.Int).Sub(integer(n), of.left); {
	case n <= 0:
		return Decision{Allowed: true}
	case uint64(n) > b.limit.Burst:
		return Decision{RetryAfter: -1}
	case lack.Sign() > 0:
		refills := lack.Add(lack, integer(b.limit.Tokens-1)).Div(lack, integer(b.limit.Tokens)).Int64()
		return Decision{RetryAfter: time.Duration((index+refills)*int64(b.limit.Per) - now)}
	}
	of.left.Sub(of.left, integer(n))
	return Decision{Allowed: true}
}

// A queue is a limiter with buckets whose requests wait for their turn.
type queue struct {
	bucket *bucket
	gone   map[string]time.Time // when the next request may leave
	came   int
}

func (q *queue) Take(key string, n int64) (d Decision) {
	q.bucket.mu.Lock()
	defer q.bucket.mu.Unlock()
	now := time.Now()
	if d = q.bucket.take(key, n, now); !d.Allowed || n <= 0 {
		return d
	}
	turn := q.gone[key]
	if turn.Before(now) {
		turn = now
	}
	each := new(big.Int).Div(new(big.Int).Add(q.bucket.units(n), integer(q.bucket.limit.Tokens-1)), integer(q.bucket.limit.Tokens))
	q.gone[key] = turn.Add(time.Duration(each.Int64()))
	d.Wait = turn.Sub(now)
	if q.came++; q.came%1000 == 999 {
		for name, turn := range q.gone {
			if turn.Before(now) {
				delete(q.gone, name)
			}
		}
	}
	return d
}

// TestCorrectLimiters: a correct limiter of each kind passes all subtests.
func TestCorrectLimiters(t *testing.T) {
	for promise, limiter := range map[Promise]func(Limit) Limiter{
		Bucket:          func(l Limit) Limiter { return newBucket(l, "") },
		LeakyQueue:      func(l Limit) Limiter { return &queue{bucket: newBucket(l, ""), gone: map[string]time.Time{}} },
		BatchRefill:     func(l Limit) Limiter { return &batches{limit: l, keys: map[string]*batch{}} },
		FixedWindow:     func(l Limit) Limiter { return fixedWindow(l) },
		AlignedWindow:   func(l Limit) Limiter { return alignedWindow(l) },
		SlidingEstimate: func(l Limit) Limiter { return slidingEstimate(l) },
		SlidingExact:    func(l Limit) Limiter { return slidingExact(l) },
	} {
		t.Run(promise.String(), func(t *testing.T) {
			config := Config{Promise: promise, Keys: 1000, New: func(_ testing.TB, l Limit) Limiter { return limiter(l) }}
			if testing.Short() && promise != Bucket {
				config.Skip = map[string]string{"Leak": "it takes longer than all others together"}
			}
			Test(t, config)
		})
	}
}
