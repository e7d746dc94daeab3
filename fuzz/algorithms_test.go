package fuzz

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/reference"
	"github.com/weir-go/weir/shard"
)

// plain has the numbers of a policy whose algorithm counts whole tokens.
type plain struct {
	limit  uint64
	window time.Duration // the length of a window, or the interval between two batches
	refill uint64        // tokens of a batch
}

// An algorithm has functions that make its policy and its reference model. It also has a list of numbers for which it
// is exact. SetPolicy can change the policy from any numbers of the list to any other numbers of the list.
type algorithm struct {
	numbers []plain
	policy  func(p plain) engine.Policy
	model   func(p plain) reference.Limit
	change  func(m reference.Limit, nanos int64, p plain, limits reference.Limits) reference.Limit
}

var windowNumbers = []plain{
	{5, 10 * time.Second, 0}, {1, time.Second, 0}, {3, time.Minute, 0}, {60, time.Minute, 0}, {7, 999_983, 0},
	{1000, time.Microsecond, 0}, {100, time.Minute, 0},
}

func fixedOf(aligned bool) algorithm {
	return algorithm{
		numbers: windowNumbers,
		policy: func(p plain) engine.Policy {
			if aligned {
				return engine.FixedWindow(p.limit, p.window).Aligned()
			}
			return engine.FixedWindow(p.limit, p.window)
		},
		model: func(p plain) reference.Limit { return reference.NewFixedWindow(p.limit, p.window, aligned) },
		change: func(m reference.Limit, nanos int64, p plain, limits reference.Limits) reference.Limit {
			return m.(*reference.FixedWindow).Change(nanos, p.limit, p.window, limits)
		},
	}
}

var algorithmsOfLimits = map[string]algorithm{
	"batch refill": {
		numbers: []plain{{100, time.Second, 10}, {1, time.Second, 1}, {5, time.Minute, 5}, {4, 999_983, 3}, {1000, time.Microsecond, 1000}, {7, time.Hour, 2}},
		policy:  func(p plain) engine.Policy { return engine.BatchRefill(p.refill, p.window, p.limit) },
		model:   func(p plain) reference.Limit { return reference.NewBatchRefill(p.refill, p.window, p.limit) },
		change: func(m reference.Limit, nanos int64, p plain, _ reference.Limits) reference.Limit {
			return m.(*reference.BatchRefill).Change(nanos, p.refill, p.window, p.limit)
		},
	},
	"fixed window":   fixedOf(false),
	"aligned window": fixedOf(true),
	"sliding window": {
		numbers: append([]plain{{1 << 20, time.Hour, 0}, {9, 30 * 24 * time.Hour, 0}}, windowNumbers...),
		policy:  func(p plain) engine.Policy { return engine.SlidingWindow(p.limit, p.window) },
		model:   func(p plain) reference.Limit { return reference.NewSlidingWindow(p.limit, p.window) },
		change: func(m reference.Limit, nanos int64, p plain, limits reference.Limits) reference.Limit {
			return m.(*reference.SlidingWindow).Change(nanos, p.limit, p.window, limits)
		},
	},
	"sliding log": { // the largest limit is first, and no window is longer than an earlier one
		numbers: []plain{{60, time.Minute, 0}, {5, time.Minute, 0}, {60, time.Minute, 0}, {33, 10 * time.Second, 0}, {7, 10 * time.Second, 0}, {8, 999_983, 0}, {1, 999_983, 0}},
		policy:  func(p plain) engine.Policy { return engine.SlidingLog(p.limit, p.window) },
		model:   func(p plain) reference.Limit { return reference.NewSlidingLog(p.limit, p.window) },
		change: func(m reference.Limit, _ int64, p plain, limits reference.Limits) reference.Limit {
			const size = 60 // the largest of these limits
			log := m.(*reference.SlidingLog).Change(p.limit, p.window)
			log.Keep(time.Duration(min(float64(p.window)*size/float64(p.limit)*(1+1e-9), float64(limits.Longest))), size)
			return log
		},
	},
	"concurrency": { // the time after which tokens in flight are forgotten does not change
		numbers: []plain{{5, 10 * time.Second, 0}, {1, 10 * time.Second, 0}, {60, 10 * time.Second, 0}, {1000, 10 * time.Second, 0}},
		policy:  func(p plain) engine.Policy { return engine.Concurrency(p.limit, p.window) },
		model:   func(p plain) reference.Limit { return reference.NewConcurrency(p.limit, p.window) },
		change: func(m reference.Limit, _ int64, p plain, _ reference.Limits) reference.Limit {
			return m.(*reference.Concurrency).Change(p.limit)
		},
	},
}

// A clerk makes calls to a limiter with room for all keys, and compares every answer with the model of the key.
//
// A call with the latest time so far is decided at that time. The same is true for any call after a sweep at the latest
// time. The limiter decides any other late call between the call's own time and the latest time. So the answer must be
// between the model's answers for these two times.
type clerk struct {
	algorithm
	at      int // index of the current numbers
	present plain
	longest time.Duration // the longest window so far; 0 before the first change
	charges bool          // keys are charged, and the numbers do not change
	debt    uint64        // the bound of a key's debt, as a multiple of its limit
	refusal engine.RefusalCharge
	limiter *engine.Limiter
	clock   *hand
	models  map[string]reference.Limit
	seen    int64 // the latest time of a call
	reached int64 // a time that the limiter has certainly reached
	calls   map[string]int
}

var clients = []string{"ann", "bob", "cid", "dot", "eve", "fay"}

func newClerk(t *rapid.T, a algorithm) *clerk {
	c := &clerk{algorithm: a, clock: new(hand), models: map[string]reference.Limit{}, seen: noon, reached: noon, calls: map[string]int{}}
	if !c.isLog() { // a log starts with the first limit, because no later one may be larger
		c.at = rapid.IntRange(0, len(a.numbers)-1).Draw(t, "numbers")
	}
	c.present = a.numbers[c.at]
	c.clock.nanos.Store(noon)
	options := []engine.Option{engine.MaxKeys(19), engine.Shards(1), engine.ClockFunc(c.clock.now),
		engine.SweepInterval(24 * time.Hour)}
	if c.charges = rapid.Bool().Draw(t, "charges"); c.charges {
		options = append(options, c.drawCharges(t)...)
	}
	var err error
	c.limiter, err = engine.New(a.policy(c.present), options...)
	require.NoError(t, err)
	for _, key := range clients {
		c.models[key] = a.model(c.present)
	}
	return c
}

func (c *clerk) isLog() bool {
	_, ok := c.model(c.numbers[0]).(*reference.SlidingLog)
	return ok
}

// sync makes the limiter reach the latest time, so that idle records are forgotten.
func (c *clerk) sync(t *rapid.T) {
	was := c.clock.nanos.Load()
	c.clock.set(max(was, c.seen))
	c.sweep(t)
	c.clock.set(was)
}

// sweep (I3, I7): after a sweep there is one record for each key that is not idle.
func (c *clerk) sweep(t *rapid.T) {
	now := c.clock.nanos.Load()
	c.seen = max(c.seen, now)
	c.reached = max(c.reached, now)
	c.limiter.Sweep()
	fewest, most := uint64(0), uint64(0)
	for _, m := range c.models {
		if stays(m, c.seen) {
			fewest++
		}
		if stays(m, c.reached) {
			most++
		}
	}
	got := c.limiter.Stats()
	require.GreaterOrEqual(t, got.Keys, fewest, "I7: keys that were not idle are gone")
	require.LessOrEqual(t, got.Keys, most, "I3: keys that are idle, or a second record of one")
	require.Zero(t, got.Evictions+got.NoRoom+got.Unrecorded)
	if c.reached == c.seen {
		for _, m := range c.models {
			if !stays(m, c.seen) {
				m.Reset()
			}
		}
	}
}

// stays reports whether a sweep at the instant leaves the record of a key in the table.
func stays(m reference.Limit, nanos int64) bool {
	if log, ok := m.(*reference.SlidingLog); ok {
		return log.Stays(nanos)
	}
	return !m.Idle(nanos)
}

func (c *clerk) take(t *rapid.T, key string, n uint64, at int64, call func() engine.Decision) engine.Decision {
	c.calls["take"]++
	m := c.models[key]
	if at < c.seen && c.reached < c.seen && n > 0 && n <= c.present.limit {
		return c.lateTake(t, key, n, at, call)
	}
	if at < c.seen && c.reached < c.seen {
		c.sync(t)
	}
	late := max(c.seen-at, 0)
	c.seen = max(c.seen, at)
	want := engine.Decision{Limit: c.present.limit}
	if n == 0 {
		want.Allowed = true
	} else if n > c.present.limit {
		c.penalize(m, n)
		want.RetryAfter = engine.Never
	} else if want.Allowed = m.Take(c.seen, n); !want.Allowed {
		c.penalize(m, n)
		want.RetryAfter = time.Duration(m.RetryAfter(c.seen, n) + late)
		c.calls["refused"]++
	}
	d := call()
	c.requireSame(t, key, want, d, late)
	return d
}

func (c *clerk) peek(t *rapid.T, key string, n uint64) {
	at := c.clock.nanos.Load()
	if at < c.seen {
		c.sync(t)
	}
	c.seen = max(c.seen, at)
	m, late := c.models[key], c.seen-at
	want := engine.Decision{Limit: c.present.limit, RetryAfter: engine.Never}
	if n <= c.present.limit {
		want.RetryAfter = time.Duration(m.RetryAfter(c.seen, n))
		if n == 0 { // 0 tokens cost nothing, even if a new limit is exceeded
			want.RetryAfter = 0
		}
		want.Allowed = want.RetryAfter == 0
		if !want.Allowed {
			want.RetryAfter += time.Duration(late)
		}
	}
	c.requireSame(t, key, want, c.limiter.Peek(c.limiter.Key(key), n), late)
}

// requireSame sets two fields of the decision want from the model: Remaining and ResetAfter. Then it compares the
// decision got with want.
func (c *clerk) requireSame(t *rapid.T, key string, want, got engine.Decision, late int64) {
	m := c.models[key]
	want.Remaining = m.Remaining(c.seen)
	if want.ResetAfter = time.Duration(m.ResetAfter(c.seen)); want.ResetAfter > 0 {
		want.ResetAfter += time.Duration(late)
		if m.Idle(c.seen) && got.ResetAfter == 0 {
			want.ResetAfter = 0 // a counter whose tokens no longer count may be forgotten before its window ends
		}
	}
	require.Equal(t, want, got, "%s at %d, %d ns late: I1, I2", key, c.seen, late)
}

// lateTake (I8): a late call admits nothing that the latest time would refuse, and refuses nothing that its own time
// would admit. The time of the decision is unknown, so the key is reset afterwards.
func (c *clerk) lateTake(t *rapid.T, key string, n uint64, at int64, call func() engine.Decision) engine.Decision {
	c.calls["late take"]++
	m := c.models[key]
	d := call()
	require.Equal(t, c.present.limit, d.Limit)
	if d.Allowed {
		require.LessOrEqual(t, n, m.Remaining(c.seen), "I8: %d tokens at %d", n, at)
		c.reset(key)
	} else {
		if c.refusal != engine.ChargeNothing { // the cost of the refusal is unknown
			defer c.reset(key)
		}
		require.Greater(t, n, m.Remaining(max(at, c.reached)), "late, at %d", at)
		require.Positive(t, d.RetryAfter)
	}
	return d
}

func (c *clerk) reset(key string) {
	c.limiter.Reset(c.limiter.Key(key))
	c.models[key].Reset()
}

func (c *clerk) refund(t *rapid.T, key string, n uint64) {
	at := c.clock.nanos.Load()
	if at < c.seen {
		c.sync(t)
	}
	c.seen = max(c.seen, at)
	c.models[key].Refund(c.seen, n)
	c.limiter.Refund(c.limiter.Key(key), n)
}

// setPolicy changes the numbers at the latest time. Keys still owe their tokens.
func (c *clerk) setPolicy(t *rapid.T) {
	next := rapid.IntRange(0, len(c.numbers)-1).Draw(t, "numbers")
	if c.isLog() && next < c.at && c.numbers[next].window > c.present.window {
		next = c.at
	}
	c.seen = max(c.seen, c.clock.nanos.Load())
	c.sync(t)
	if err := c.limiter.SetPolicy(c.policy(c.numbers[next])); err != nil {
		require.ErrorContains(t, err, "of earlier limits", "all else can be set")
		return
	}
	c.longest = max(c.longest, c.present.window, c.numbers[next].window)
	c.at, c.present = next, c.numbers[next]
	limits := reference.Limits{Lowest: c.present.limit, Longest: int64(c.longest)}
	for key, m := range c.models {
		c.models[key] = c.change(m, c.seen, c.present, limits)
	}
	c.calls["set policy"]++
}

func (c *clerk) drawCost(t *rapid.T) uint64 {
	switch rapid.IntRange(0, 15).Draw(t, "odd cost") {
	case 0:
		return 0
	case 1:
		return c.present.limit + rapid.SampledFrom([]uint64{1, 2, math.MaxUint64 - 1<<33}).Draw(t, "above the limit")
	}
	return drawCost(t, c.present.limit)
}

// advance moves the clock by a part of a window, to a key's next change, to the next edge of an aligned window, or far
// ahead.
func (c *clerk) advance(t *rapid.T) {
	now, window := c.clock.nanos.Load(), int64(c.present.window)
	m, off := c.models[rapid.SampledFrom(clients).Draw(t, "key")], rapid.Int64Range(-1, 1).Draw(t, "off")
	wait := int64(0)
	switch rapid.IntRange(0, 9).Draw(t, "wait") {
	case 0, 1:
		wait = rapid.Int64Range(0, window).Draw(t, "part")
	case 2, 3:
		wait = m.ResetAfter(max(now, c.seen)) + off
	case 4, 5:
		wait = m.RetryAfter(max(now, c.seen), rapid.Uint64Range(1, c.present.limit).Draw(t, "for")) + off
	case 6, 7:
		wait = window - now%window + off
	case 8:
		wait = rapid.Int64Range(0, window/5).Draw(t, "little")
	case 9:
		wait = window * rapid.Int64Range(1, 4).Draw(t, "windows")
		if rapid.IntRange(0, 9).Draw(t, "leap") == 0 {
			wait = int64(math.Ldexp(1, rapid.IntRange(36, 58).Draw(t, "leap bits"))) + off
		}
	}
	c.move(now, max(wait, 0))
}

// move moves the clock, unless it would come near the end of time.
func (c *clerk) move(now, wait int64) {
	if now+wait < 8e18 {
		c.clock.nanos.Store(now + wait)
	}
}

// TestAlgorithmsAgainstTheirModels (I1, I2, I3, I7, I8): calls of every kind agree with the model in every field, to
// the nanosecond, while times leap and are late, and numbers change.
func TestAlgorithmsAgainstTheirModels(t *testing.T) {
	for name, a := range algorithmsOfLimits {
		t.Run(name, func(t *testing.T) {
			total, times := map[string]int{}, 30
			if testing.Short() {
				times = 4
			}
			for range times { // short histories: a check takes some milliseconds
				rapid.Check(t, func(t *rapid.T) {
					c := newClerk(t, a)
					defer c.limiter.Close()
					c.run(t)
					for what, n := range c.calls {
						total[what] += n
					}
				})
			}
			t.Logf("%v", total)
			if testing.Short() {
				return
			}
			for _, what := range []string{"take", "refused", "late take", "waited", "set policy", "charge", "lost",
				"penalty"} {
				if what != "penalty" || name != "concurrency" { // New accepts no penalty for this algorithm
					assert.Positive(t, total[what], what)
				}
			}
		})
	}
}

func (c *clerk) run(t *rapid.T) {
	client := rapid.SampledFrom(clients)
	now := func() int64 { return c.clock.nanos.Load() }
	take := func(t *rapid.T) {
		key, n := client.Draw(t, "key"), c.drawCost(t)
		if n <= c.present.limit || now() >= c.seen || c.reached == c.seen {
			c.take(t, key, n, now(), func() engine.Decision { return c.limiter.Take(key, n) })
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"take":  take,
		"take2": take,
		"drain": func(t *rapid.T) {
			key := client.Draw(t, "key")
			n := max(c.models[key].Remaining(max(c.seen, now())), 1)
			c.take(t, key, n, now(), func() engine.Decision { return c.limiter.Take(key, n) })
		},
		"allow": func(t *rapid.T) {
			key := client.Draw(t, "key")
			c.take(t, key, 1, now(), func() engine.Decision {
				before := c.limiter.Peek(c.limiter.Key(key), 1)
				allowed := c.limiter.Allow(key)
				if !allowed && c.refusal != engine.ChargeNothing { // the refusal was charged
					before = c.limiter.Peek(c.limiter.Key(key), 1)
				}
				if !allowed {
					before.Allowed = false
					return before
				}
				d := c.limiter.Peek(c.limiter.Key(key), 0)
				d.Allowed, d.RetryAfter = true, 0
				return d
			})
		},
		"take at": func(t *rapid.T) {
			key, n, at := client.Draw(t, "key"), c.drawCost(t), now()
			switch rapid.IntRange(0, 4).Draw(t, "when") {
			case 0:
				at = c.seen
			case 1:
				at = min(c.seen+rapid.Int64Range(0, int64(c.present.window)*2).Draw(t, "ahead"), 8e18)
			case 2:
				at = rapid.SampledFrom([]int64{0, noon - 1, noon, c.reached, c.reached - 1, c.reached + 1}).Draw(t, "at")
			default:
				at -= rapid.Int64Range(0, int64(c.present.window)*3).Draw(t, "late")
			}
			if at > now() { // the limiter does not trust a time that the clock has not reached
				c.clock.nanos.Store(at)
			}
			c.take(t, key, n, at, func() engine.Decision { return c.limiter.TakeAt(c.limiter.Key(key), n, time.Unix(0, at)) })
		},
		"charge": func(t *rapid.T) { c.charge(t, client.Draw(t, "key")) },
		"peek":   func(t *rapid.T) { c.peek(t, client.Draw(t, "key"), c.drawCost(t)) },
		"refund": func(t *rapid.T) { c.refund(t, client.Draw(t, "key"), drawCost(t, c.present.limit)) },
		"reset":  func(t *rapid.T) { c.reset(client.Draw(t, "key")) },
		"sweep":  c.sweep,
		"set policy": func(t *rapid.T) {
			if !c.charges && rapid.IntRange(0, 2).Draw(t, "rarely") == 0 {
				c.setPolicy(t)
			}
		},
		"everybody": func(t *rapid.T) {
			for _, key := range clients {
				c.peek(t, key, 1)
			}
		},
		"advance":  c.advance,
		"advance2": c.advance,
		"wait as told": func(t *rapid.T) {
			if c.refusal != engine.ChargeNothing {
				return // a request before the end of the wait would be charged
			}
			key, n := client.Draw(t, "key"), drawCost(t, c.present.limit)
			if now() < c.seen {
				c.clock.nanos.Store(c.seen)
			}
			take := func() engine.Decision {
				return c.take(t, key, n, now(), func() engine.Decision { return c.limiter.Take(key, n) })
			}
			d := take()
			if d.Allowed {
				d = take()
			}
			if d.Allowed || now()+int64(d.RetryAfter) > 8e18 {
				return
			}
			c.calls["waited"]++
			c.move(now(), int64(d.RetryAfter)-1)
			require.False(t, take().Allowed, "1 ns before %v", d.RetryAfter)
			c.move(now(), 1)
			require.True(t, take().Allowed, "after %v, as told", d.RetryAfter)
		},
	})
}

// callRefund is another kind of call in a history: see callTake.
const callRefund = callPeek + 1

// A windowScene is a scene for an algorithm that is not a token bucket.
type windowScene struct {
	scene
	algorithm func() (atomicbucket.Algorithm, error)
}

// A windowModel is a reference model without pointers, so equal states can be compared by ==.
type windowModel[M any] interface {
	*M
	reference.Limit
}

// modelOf returns a sequential model of one key's window. If all tokens of a record were given back, the table may free
// the record and forget its last time, or keep the record. So the model continues with both states.
func modelOf[M comparable, P windowModel[M]](first M, limit uint64) porcupine.Model {
	buckets := bucketModel(0)
	used := func(m P, at uint64) uint64 { return limit - m.Remaining(int64(at)) }
	only := func(ok bool, next any) []any {
		if !ok {
			return nil
		}
		return []any{next}
	}
	model := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{first} },
		Partition:         buckets.Partition,
		DescribeOperation: buckets.DescribeOperation,
		Step: func(state, input, output any) []any {
			was := state.(M)
			is, in, out := P(&was), input.(call), output.(answer)
			switch in.what {
			case callPeek:
				return only(out.debt == used(is, out.at), state)
			case callReset:
				if out.had {
					return only(was != first, first)
				}
				return only(is.Idle(int64(out.watermark)), state)
			case callRefund:
				if out.verdict != shard.Admitted { // the key had no record
					return only(is.Idle(int64(out.at)), state)
				}
				is.Refund(int64(out.at), in.cost)
				next := only(out.unknown || out.debt == used(is, out.at), was)
				if next != nil && is.Idle(0) {
					next = append(next, first)
				}
				return next
			}
			switch ok := is.Take(int64(out.at), in.cost); out.verdict {
			case shard.Admitted:
				return only(ok && out.debt == used(is, out.at), was)
			case shard.Refused:
				return only(!ok && out.debt == used(is, out.at), state)
			}
			return nil
		},
	}
	return model.ToModel()
}

// makeWindow is recorder.make for an algorithm that is not a token bucket.
func (r *recorder) makeWindow(c call, client int) porcupine.Operation {
	place := r.table.Find(c.key)
	a, op := answer{}, porcupine.Operation{ClientId: client, Input: c, Call: r.stamp.Add(1)}
	of := func(o shard.Outcome, status atomicbucket.Status) answer {
		return answer{verdict: o.Verdict, at: uint64(o.At), debt: o.Plan.Quota(0).Tokens - status.Remaining}
	}
	switch c.what {
	case callTake:
		var status atomicbucket.Status
		o := r.table.Decide(place, int64(c.now), c.cost, 0, &status)
		a = of(o, status)
	case callPeek:
		a = of(r.table.Peek(place, int64(c.now), 0, 0))
	case callRefund:
		o := r.table.Refund(place, int64(c.now), c.cost, 0, shard.Receipt{})
		algorithm := o.Plan.Algorithm()
		a = answer{
			verdict: o.Verdict, at: uint64(o.At), debt: min(algorithm.Debt(o.State.Record(), algorithm.Ticks(o.At)), o.Plan.Quota(0).Tokens),
			unknown: algorithm.RingSize() > 0, // the state of a log does not show how many tokens are left
		}
	case callReset:
		a = answer{had: r.table.Reset(place), watermark: uint64(r.table.Watermark())}
	}
	op.Output, op.Return = a, r.stamp.Add(1)
	return op
}

// logModel is a [reference.SlidingLog] without pointers, for up to four tokens. It has the four latest takes, the
// oldest first. Four takes are enough, because each take has at least one token.
type logModel struct {
	limit  uint64
	length time.Duration
	taken  [4]taken
	size   int
	newest int64 // the time of the newest take, even if it was refunded
}

type taken struct {
	at int64
	n  uint64
}

// log returns the [reference.SlidingLog] with the same takes.
func (m *logModel) log() *reference.SlidingLog {
	log := reference.NewSlidingLog(m.limit, m.length)
	for _, e := range m.taken[:m.size] {
		log.Take(e.at, e.n)
	}
	return log
}

func (m *logModel) Take(nanos int64, n uint64) bool {
	if !m.log().Take(nanos, n) {
		return false
	}
	m.newest = max(m.newest, nanos)
	if m.size == len(m.taken) {
		copy(m.taken[:], m.taken[1:]) // the oldest has left the window, because four others are already the limit
		m.size--
	}
	m.taken[m.size].at, m.taken[m.size].n = m.newest, n
	m.size++
	return true
}

func (m *logModel) Remaining(nanos int64) uint64           { return m.log().Remaining(nanos) }
func (m *logModel) RetryAfter(nanos int64, n uint64) int64 { return m.log().RetryAfter(nanos, n) }
func (m *logModel) ResetAfter(nanos int64) int64           { return m.log().ResetAfter(nanos) }
func (m *logModel) Idle(nanos int64) bool                  { return m.log().Idle(nanos) }
func (m *logModel) Refund(nanos int64, n uint64) {
	if n == 0 || m.Remaining(nanos) == m.limit {
		return
	}
	n += max(m.log().Count(nanos), m.limit) - m.limit // a late refund sees only the newest tokens, up to the limit
	after := *m
	after.taken, after.size = [4]taken{}, 0
	for _, e := range m.taken[:m.size] {
		if e.at+int64(m.length) <= nanos {
			continue
		}
		given := min(n, e.n)
		n, e.n = n-given, e.n-given
		if e.n > 0 {
			after.taken[after.size] = e
			after.size++
		}
	}
	*m = after
}

func (m *logModel) Reset() { *m = logModel{limit: m.limit, length: m.length} }

func (s windowScene) windowHistory(t *testing.T, seed uint64) []porcupine.Operation {
	algorithm, err := s.algorithm()
	require.NoError(t, err)
	plan, err := shard.NewPlan(algorithm, 0)
	require.NoError(t, err)
	tb, err := shard.New(shard.Config{Plan: plan, Slots: s.slots, Shards: 1, ProbeWindow: s.probeWindow, Overflow: shard.Refuse, Start: start})
	require.NoError(t, err)
	r := &recorder{table: tb}
	r.clock.Store(start)
	var histories [historyClients][]porcupine.Operation
	var all sync.WaitGroup
	var ready atomic.Int32
	for client := range historyClients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			for ready.Add(1); ready.Load() < historyClients; { // all goroutines begin at the same time
				runtime.Gosched()
			}
			for range historyCalls {
				c, now := call{key: random.Uint64N(s.keys), cost: 1 + random.Uint64N(s.costs)}, int64(start)
				if s.step > 0 {
					now = r.clock.Add(random.Int64N(s.step))
				}
				switch random.IntN(12) {
				case 0, 1:
					c.what = callPeek
				case 2:
					if s.resets {
						c.what = callReset
					}
				case 3:
					now -= random.Int64N(3*s.step + 1) // a late call
				case 4:
					r.table.Sweep(now, nil)
				case 5, 6:
					c.what = callRefund
				}
				if random.IntN(3) == 0 {
					runtime.Gosched()
				}
				c.now = uint64(now)
				histories[client] = append(histories[client], r.makeWindow(c, client))
			}
		})
	}
	all.Wait()
	require.Zero(t, tb.Stats().Evictions+tb.Stats().NoRoom)
	var history []porcupine.Operation
	for _, calls := range histories {
		history = append(history, calls...)
	}
	return history
}

// windowScenes has scenes with room for all keys.
var windowScenes = map[string]windowScene{
	"the clock stands": {scene: scene{keys: 3, slots: 8, probeWindow: 8, burst: 4, costs: 3, resets: true}},
	"the clock runs":   {scene: scene{keys: 3, slots: 8, probeWindow: 8, burst: 3, costs: 2, resets: true, step: second / 2}},
	// There is a slot for each key, and for each client that is inserting.
	"idle records": {scene: scene{keys: 4, slots: 8, probeWindow: 8, burst: 2, costs: 2, step: 3 * second}},
}

// TestWindowHistoriesAreLinearizable (I9, I1, I2, I3, I7, I8): TestHistoriesAreLinearizable for fixed windows, sliding
// window counters and logs, with takes, peeks, refunds and resets.
func TestWindowHistoriesAreLinearizable(t *testing.T) {
	n := uint64(1200)
	if testing.Short() {
		n = 150
	}
	const window = 2 * time.Second
	for name, s := range windowScenes {
		for kind, of := range map[string]struct {
			algorithm func() (atomicbucket.Algorithm, error)
			model     porcupine.Model
		}{
			"fixed": {func() (atomicbucket.Algorithm, error) {
				algorithm, err := atomicbucket.NewFixedWindow(s.burst, s.burst, window, false)
				return &algorithm, err
			}, modelOf(*reference.NewFixedWindow(s.burst, window, false), s.burst)},
			"aligned": {func() (atomicbucket.Algorithm, error) {
				algorithm, err := atomicbucket.NewFixedWindow(s.burst, s.burst, window, true)
				return &algorithm, err
			}, modelOf(*reference.NewFixedWindow(s.burst, window, true), s.burst)},
			"sliding": {func() (atomicbucket.Algorithm, error) {
				algorithm, err := atomicbucket.NewSlidingWindow(s.burst, s.burst, window)
				return &algorithm, err
			}, modelOf(*reference.NewSlidingWindow(s.burst, window), s.burst)},
			"log": {func() (atomicbucket.Algorithm, error) {
				algorithm, err := atomicbucket.NewSlidingLog(s.burst, s.burst, window)
				return &algorithm, err
			}, modelOf(logModel{limit: s.burst, length: window}, s.burst)},
			"in flight": {func() (atomicbucket.Algorithm, error) {
				algorithm, err := atomicbucket.NewConcurrency(s.burst, s.burst, window)
				return &algorithm, err
			}, modelOf(*reference.NewConcurrency(s.burst, window), s.burst)},
		} {
			t.Run(fmt.Sprintf("%s, %s", kind, name), func(t *testing.T) {
				s := s
				s.algorithm = of.algorithm
				admitted, refused := 0, 0
				for seed := range n {
					history := s.windowHistory(t, seed)
					for _, op := range history {
						if in, out := op.Input.(call), op.Output.(answer); in.what == callTake && out.verdict == shard.Admitted {
							admitted++
						} else if in.what == callTake {
							refused++
						}
					}
					if !porcupine.CheckOperations(of.model, history) {
						for _, op := range history {
							t.Logf("%d: %2d-%2d %s", op.ClientId, op.Call, op.Return, of.model.DescribeOperation(op.Input, op.Output))
						}
						require.Failf(t, "I9", "round %d: no order of these calls explains their answers", seed)
					}
				}
				t.Logf("%d admitted, %d refused", admitted, refused)
				assert.Positive(t, admitted)
				assert.Positive(t, refused)
			})
		}
	}
}

// TestBrokenWindowHistoriesAreFound (I9): the check of the test above accepts possible histories, and rejects others.
func TestBrokenWindowHistoriesAreFound(t *testing.T) {
	const window = 2 * second
	const edge = start / window * window // the start of an aligned window
	op := func(from, to int64, what int, at, n uint64, a answer) porcupine.Operation {
		a.at = at
		return porcupine.Operation{Call: from, Return: to, Input: call{what: what, key: 1, now: at, cost: n}, Output: a}
	}
	admitted := func(debt uint64) answer { return answer{verdict: shard.Admitted, debt: debt} }
	refused := func(debt uint64) answer { return answer{verdict: shard.Refused, debt: debt} }
	fixed := modelOf(*reference.NewFixedWindow(4, window, false), 4)
	sliding := modelOf(*reference.NewSlidingWindow(4, window), 4)
	log := modelOf(logModel{limit: 4, length: window}, 4)
	for name, c := range map[string]struct {
		model   porcupine.Model
		want    bool
		history []porcupine.Operation
	}{
		"a window that begins with its first request": {fixed, true, []porcupine.Operation{
			op(1, 2, callTake, edge+5, 4, admitted(4)),
			op(3, 4, callTake, edge+5+window-1, 1, refused(4)),
			op(5, 6, callTake, edge+5+window, 4, admitted(4)),
		}},
		"a window that began with the clock": {fixed, false, []porcupine.Operation{
			op(1, 2, callTake, edge+5, 4, admitted(4)),
			op(3, 4, callTake, edge+window, 4, admitted(4)),
		}},
		"two at once that both saw an empty window": {fixed, false, []porcupine.Operation{
			op(1, 3, callTake, edge, 3, admitted(3)),
			op(2, 4, callTake, edge, 3, admitted(3)),
		}},
		"refused requests that were counted": {sliding, false, []porcupine.Operation{
			op(1, 2, callTake, edge, 4, admitted(4)),
			op(3, 4, callTake, edge, 1, refused(4)),
			op(5, 6, callPeek, edge+window, 0, answer{debt: 5}),
		}},
		"the share of the previous window": {sliding, true, []porcupine.Operation{
			op(1, 2, callTake, edge, 4, admitted(4)),
			op(3, 4, callTake, edge+window*3/2, 2, admitted(4)),
			op(5, 6, callTake, edge+window*3/2, 1, refused(4)),
			op(7, 8, callRefund, edge+window*3/2, 3, admitted(1)),
		}},
		"a first write of a window that wiped another's": {sliding, false, []porcupine.Operation{
			op(1, 2, callTake, edge, 4, admitted(4)),
			op(3, 5, callTake, edge+window*3/2, 1, admitted(3)),
			op(4, 6, callTake, edge+window*3/2, 1, admitted(3)),
		}},
		"a log that lets in what the oldest makes room for": {log, true, []porcupine.Operation{
			op(1, 2, callTake, edge, 1, admitted(1)),
			op(3, 4, callTake, edge+5, 3, admitted(4)),
			op(5, 6, callTake, edge+window-1, 1, refused(4)),
			op(7, 8, callTake, edge+window, 1, admitted(4)),
			op(9, 10, callTake, edge+window+4, 1, refused(4)),
			op(11, 12, callTake, edge+window+5, 3, admitted(4)),
		}},
		"a log whose oldest left too soon": {log, false, []porcupine.Operation{
			op(1, 2, callTake, edge, 4, admitted(4)),
			op(3, 4, callTake, edge+window-1, 1, admitted(1)),
		}},
		"a log given back whole, whose record was freed": {log, true, []porcupine.Operation{
			op(1, 2, callTake, edge+500, 1, admitted(1)),
			op(3, 4, callRefund, edge+500, 1, answer{verdict: shard.Admitted, unknown: true}),
			op(5, 6, callTake, edge+100, 1, admitted(1)), // a late take; the newer one was forgotten with the record
			op(7, 8, callTake, edge+100+window, 4, admitted(4)),
		}},
		"a log given back whole, whose record was kept": {log, true, []porcupine.Operation{
			op(1, 2, callTake, edge+500, 1, admitted(1)),
			op(3, 4, callRefund, edge+500, 1, answer{verdict: shard.Admitted, unknown: true}),
			op(5, 6, callTake, edge+100, 1, admitted(1)), // a late take, which counts from the time of the newest take
			op(7, 8, callTake, edge+100+window, 4, refused(1)),
		}},
		"a log not given back, whose record was freed": {log, false, []porcupine.Operation{
			op(1, 2, callTake, edge+500, 2, admitted(2)),
			op(3, 4, callRefund, edge+500, 1, answer{verdict: shard.Admitted, unknown: true}),
			op(5, 6, callTake, edge+100, 1, admitted(2)),
			op(7, 8, callTake, edge+100+window, 3, admitted(4)),
		}},
		"a record forgotten too soon": {sliding, false, []porcupine.Operation{
			op(1, 2, callTake, edge, 4, admitted(4)),
			op(3, 4, callReset, edge, 0, answer{watermark: edge + window}),
		}},
	} {
		assert.Equal(t, c.want, porcupine.CheckOperations(c.model, c.history), name)
	}
}
