package fuzz

import (
	"math"
	"math/big"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/reference"
)

// hand is a clock that a test sets, in nanoseconds since 1970.
type hand struct {
	nanos  atomic.Int64
	latest int64 // the latest time to which it was set
}

func (h *hand) now() time.Time { return time.Unix(0, h.nanos.Load()) }

// set sets the clock, but not more than a minute back. If the clock went back further, the limiter would leave the
// clock, and the models would not: see TestAClockThatLeapsAndComesBack of package engine.
func (h *hand) set(nanos int64) {
	h.latest = max(h.latest, h.nanos.Load(), nanos)
	h.nanos.Store(max(nanos, h.latest-int64(time.Minute)))
}

// noon is the time at which test limiters are made, in 2023.
const noon = 1_700_000_000_000_000_000

// A witness makes calls on a limiter, one after the other, and compares every answer with a map of exact buckets.
//
// A call with the latest time so far is decided at that time. The limiter decides a late call at a time of its choice,
// which the answer shows. This time is not before the call's own time or the latest sweep, and not after the latest
// time of any earlier call. So admitted tokens must be available at the latest possible time (I8), and refused tokens
// must be missing at the earliest.
type witness struct {
	numbers     numbers
	limiter     *engine.Limiter
	clock       *hand
	exact       bool
	slack       *big.Rat // in tokens
	rate        *big.Rat // tokens per nanosecond
	token       int64    // nanoseconds in which a token comes back if that is a whole number, else 0
	overflow    engine.OverflowPolicy
	probeWindow int // slots that all keys share, or 0 if there is room for all
	model       *reference.Table[string]
	swept       int64 // a time that the limiter has reached
	seen        int64 // the latest time on which the limiter may have acted
	want        engine.Stats
	spends      map[string][]spend
}

// newWitness makes a limiter and its witness. If probeWindow is true, the limiter has a single probe window.
func newWitness(t require.TestingT, p numbers, probeWindow bool, overflow engine.OverflowPolicy) *witness {
	algorithm, err := atomicbucket.NewTokenBucket(p.tokens, p.period, p.burst)
	require.NoError(t, err)
	w := &witness{
		numbers:  p,
		clock:    new(hand),
		exact:    algorithm.Exact(),
		slack:    slack(&algorithm),
		overflow: overflow,
		model:    reference.NewTable[string](p.tokens, p.period, p.burst),
		swept:    noon,
		seen:     noon,
		spends:   map[string][]spend{},
	}
	w.rate = w.model.Rate()
	if token := new(big.Rat).Inv(w.rate); w.exact && token.IsInt() {
		w.token = token.Num().Int64()
	}
	w.clock.nanos.Store(noon)
	keys := 1000
	if probeWindow {
		keys, w.probeWindow = 1, 32
	}
	w.limiter, err = engine.New(engine.TokenBucket(engine.Per(p.tokens, p.period), p.burst), engine.MaxKeys(keys), engine.Shards(1),
		engine.Overflow(overflow), engine.ClockFunc(w.clock.now), engine.SweepInterval(24*time.Hour))
	require.NoError(t, err)
	w.want = w.limiter.Stats()
	if probeWindow {
		require.EqualValues(t, w.probeWindow, w.want.Slots)
	}
	return w
}

// timeline returns a time in nanoseconds since 1970, at most believed.
func timeline(at time.Time) int64 {
	if at.Before(time.Unix(0, 0)) {
		return 0
	}
	if at.After(time.Unix(0, believed)) {
		return believed
	}
	return at.UnixNano()
}

// takeAt calls TakeAt and checks the answer. If the clock has not reached the time of the call, takeAt first moves the
// clock to this time, because the limiter would not trust the time.
func (w *witness) takeAt(t require.TestingT, key string, n uint64, at time.Time) engine.Decision {
	if timeline(at) == believed {
		at = time.Unix(0, believed)
	}
	if timeline(at) > w.clock.nanos.Load() {
		w.clock.set(timeline(at))
	}
	return w.decide(t, key, n, timeline(at), true, func() engine.Decision { return w.limiter.TakeAt(w.limiter.Key(key), n, at) })
}

func (w *witness) take(t require.TestingT, key string, n uint64) engine.Decision {
	return w.decide(t, key, n, w.clock.nanos.Load(), true, func() engine.Decision { return w.limiter.Take(key, n) })
}

// allow calls Allow and checks the answer. The rest of the decision comes from Peek.
func (w *witness) allow(t require.TestingT, key string) {
	if w.late() && w.swept < w.seen {
		w.sync(t)
	}
	w.decide(t, key, 1, w.clock.nanos.Load(), true, func() engine.Decision {
		before := w.limiter.Peek(w.limiter.Key(key), 1)
		stats := w.limiter.Stats()
		d := w.limiter.Peek(w.limiter.Key(key), 1)
		d.Allowed = w.limiter.Allow(key)
		after := w.limiter.Peek(w.limiter.Key(key), 1)
		if now := w.limiter.Stats(); now.NoRoom > stats.NoRoom {
			// Peek does not show when a record becomes idle and makes room.
			require.False(t, d.Allowed)
			d.Remaining, d.RetryAfter = 0, w.untilRoom(w.clock.nanos.Load())
			d.ResetAfter = d.RetryAfter
			return d
		} else if now.Unrecorded > stats.Unrecorded {
			require.True(t, d.Allowed)
			d.Remaining, d.ResetAfter = w.numbers.burst-1, time.Duration(w.seen-w.clock.nanos.Load()+w.token)
			return d
		}
		require.Equal(t, before.Allowed, d.Allowed, "Allow says what Peek has said")
		d.Remaining, d.ResetAfter = after.Remaining, after.ResetAfter
		return d
	})
}

func (w *witness) peek(t require.TestingT, key string, n uint64) engine.Decision {
	return w.decide(t, key, n, w.clock.nanos.Load(), false, func() engine.Decision { return w.limiter.Peek(w.limiter.Key(key), n) })
}

func (w *witness) late() bool { return w.clock.nanos.Load() < w.seen }

// sync makes the limiter reach the latest time that it has seen. Late calls are then decided at this time.
func (w *witness) sync(t require.TestingT) {
	was := w.clock.nanos.Load()
	w.clock.set(max(was, w.seen))
	w.sweep(t)
	w.clock.set(was)
}

// sweep calls Sweep. Afterwards each key that is not idle must have one record (I3).
func (w *witness) sweep(t require.TestingT) {
	now := w.clock.nanos.Load()
	w.seen = max(w.seen, now)
	w.swept = max(w.swept, now)
	w.limiter.Sweep()
	got := w.limiter.Stats()
	require.Greater(t, got.Sweeps, w.want.Sweeps)
	fewest, most := len(w.model.Indebted(w.seen)), len(w.model.Indebted(w.swept))
	if !w.exact {
		most = max(most, len(w.model.Indebted(max(w.swept-w.slackNanos(), 0))))
	}
	require.GreaterOrEqual(t, got.Keys, uint64(fewest), "I7: keys that were not idle are gone")
	require.LessOrEqual(t, got.Keys, uint64(most), "I3: keys that are idle, or a second record of one")
}

// slackNanos returns the slack as a time, rounded up.
func (w *witness) slackNanos() int64 {
	return int64(min(ceil(new(big.Rat).Quo(w.slack, w.rate)), math.MaxInt64))
}

func (w *witness) reset(key string) {
	w.limiter.Reset(w.limiter.Key(key))
	w.forget(key)
}

func (w *witness) forget(key string) {
	w.model.Forget(key)
	delete(w.spends, key)
}

// stats checks the forgotten tokens and the calls without room in Stats.
func (w *witness) stats(t require.TestingT) {
	got := w.limiter.Stats()
	// After a leap of time, a take makes a sweep itself, and may search again.
	require.LessOrEqual(t, got.Retries-w.want.Retries, got.Sweeps-w.want.Sweeps)
	w.want.Keys, w.want.Sweeps, w.want.Reclaimed, w.want.Retries = got.Keys, got.Sweeps, got.Reclaimed, got.Retries
	require.Equal(t, w.want, got, "evictions, forgiven, no room (I7); no bytes more (I6)")
}

func (w *witness) decide(t require.TestingT, key string, n uint64, now int64, takes bool, call func() engine.Decision) engine.Decision {
	takes = takes && n > 0 && n <= w.numbers.burst
	from, to := max(now, w.swept), max(now, w.seen)
	if takes && from < to && (w.token == 0 || to-now > 1<<62 || w.probeWindow > 0 && len(w.model.Indebted(from)) >= w.probeWindow) {
		w.sync(t) // otherwise the time of the decision could not be read from the answer
		to = max(now, w.seen)
		from = to
	}
	w.seen = to
	if takes && w.probeWindow > 0 && w.model.Debt(key, to).Sign() <= 0 {
		rivals := slices.DeleteFunc(w.model.Indebted(to), func(k string) bool { return k == key })
		if len(rivals) == w.probeWindow && w.overflowed(t, n, now, to, rivals, call) {
			return engine.Decision{}
		} else if len(rivals) == w.probeWindow {
			require.True(t, w.model.Take(key, to, n))
			return engine.Decision{Allowed: true}
		}
	}
	fullAt := w.model.FullAt(key)
	d := call()
	require.Equal(t, w.numbers.burst, d.Limit)

	switch {
	case n == 0:
		require.True(t, d.Allowed, "nothing costs nothing")
	case n > w.numbers.burst:
		require.False(t, d.Allowed)
	case d.Allowed:
		tokens := w.model.Tokens(key, to)
		require.GreaterOrEqual(t, tokens.Cmp(rat(n)), 0, "early (I1, I8): %d of %s tokens", n, tokens.FloatString(9))
	default:
		tokens := w.model.Tokens(key, from)
		require.Negative(t, new(big.Rat).Sub(tokens, w.slack).Cmp(rat(n)), "late, or a bucket that did not fill: %d of %s tokens", n, tokens.FloatString(9))
		lack := new(big.Rat).Sub(rat(n), tokens)
		lack.Quo(lack, w.rate)
		w.requireWait(t, d.RetryAfter, now, lack.Add(lack, new(big.Rat).SetInt64(from)), "RetryAfter")
	}
	switch {
	case d.Allowed:
		require.Zero(t, d.RetryAfter)
	case n > w.numbers.burst:
		require.Equal(t, engine.Never, d.RetryAfter)
	default:
		require.Positive(t, d.RetryAfter)
	}

	if takes && d.Allowed {
		w.spend(t, key, n, now, from, to, fullAt, d.ResetAfter)
	}
	less := new(big.Rat).Sub(w.model.Tokens(key, from), w.slack)
	require.LessOrEqual(t, floor(less), d.Remaining, "tokens remaining: %+v at %d, from %d to %d, full at %s, then %s", d, now, from, to, fullAt, w.model.FullAt(key))
	require.GreaterOrEqual(t, floor(w.model.Tokens(key, to)), d.Remaining, "tokens remaining")
	full := w.model.FullAt(key)
	if d.ResetAfter == 0 {
		require.LessOrEqual(t, w.model.Debt(key, to).Sign(), 0, "not full yet")
	} else {
		w.requireWait(t, d.ResetAfter, now, full, "ResetAfter")
		later := new(big.Rat).Add(full, new(big.Rat).Quo(w.slack, w.rate))
		require.Positive(t, later.Cmp(new(big.Rat).SetInt64(from)), "it is full")
	}
	return d
}

// requireWait checks a wait that begins now. The argument ends is the expected end of the wait. The end must be rounded
// up to a nanosecond. With an algorithm that rounds, it may be up to two ticks later.
func (w *witness) requireWait(t require.TestingT, wait time.Duration, now int64, ends *big.Rat, what string) {
	latest := new(big.Rat).Add(ends, new(big.Rat).Quo(w.slack, w.rate))
	latest.Add(latest, big.NewRat(1, 1))
	if wait == math.MaxInt64 { // this or longer or, with an algorithm that rounds, up to the end of the timeline
		if w.exact {
			latest.Sub(latest, new(big.Rat).SetInt64(now))
		}
		require.Positive(t, latest.Cmp(new(big.Rat).SetInt64(math.MaxInt64)), "%s: %v from %d is too long for %s", what, wait, now, ends.FloatString(3))
		return
	}
	end := new(big.Rat).SetInt64(now)
	end.Add(end, new(big.Rat).SetInt64(int64(wait)))
	require.True(t, end.Cmp(ends) >= 0 && end.Cmp(latest) < 0, "%s: %v from %d is not until %s, at most %s", what, wait, now, ends.FloatString(3), latest.FloatString(3))
}

// spend charges an admitted take to the model at the time of its decision.
func (w *witness) spend(t require.TestingT, key string, n uint64, now, from, to int64, fullAt *big.Rat, reset time.Duration) {
	at, certain := to, from == to
	if !certain {
		// The bucket is full again at max(at, fullAt) plus the time of n tokens.
		began := new(big.Rat).SetInt64(now)
		began.Add(began, new(big.Rat).SetInt64(int64(reset)))
		began.Sub(began, new(big.Rat).Quo(rat(n), w.rate))
		earliest, latest := new(big.Rat).SetInt64(from), new(big.Rat).SetInt64(to)
		if fullAt.Cmp(earliest) > 0 {
			earliest = fullAt
		}
		if fullAt.Cmp(latest) > 0 {
			latest = fullAt
		}
		requireBetween(t, earliest, began, latest, "the time at which a late take was decided")
		if began.Cmp(new(big.Rat).SetInt64(to)) < 0 {
			at = began.Num().Int64()
			certain = began.Cmp(fullAt) > 0
		}
		if certain && at > now { // the call was not decided at its own time
			w.swept = max(w.swept, at)
		}
	}
	require.True(t, w.model.Take(key, at, n))
	if certain {
		w.spends[key] = append(w.spends[key], spend{at, n})
		requirePairsWithin(t, w.spends[key], w.rate, w.numbers.burst)
	}
}

// untilRoom returns how long it takes until the first key is idle.
func (w *witness) untilRoom(now int64) time.Duration {
	first := new(big.Rat).SetInt64(math.MaxInt64)
	for _, key := range w.model.Indebted(w.seen) {
		if full := w.model.FullAt(key); full.Cmp(first) < 0 {
			first = full
		}
	}
	return time.Duration(ceil(first) - uint64(now))
}

// overflowed checks a call for a key without room. It reports whether the key's bucket in the model stays unchanged.
func (w *witness) overflowed(t require.TestingT, n uint64, now, at int64, rivals []string, call func() engine.Decision) bool {
	room := w.untilRoom(now)
	d := call()
	switch w.overflow {
	case engine.Refuse:
		w.want.NoRoom++
		require.Equal(t, engine.Decision{Limit: w.numbers.burst, RetryAfter: room, ResetAfter: room}, d)
		return true
	case engine.Admit:
		w.want.Unrecorded++
		require.Equal(t, engine.Decision{
			Allowed: true, Limit: w.numbers.burst, Remaining: w.numbers.burst - n,
			ResetAfter: time.Duration(at-now) + time.Duration(n)*time.Duration(w.token),
		}, d)
		return true
	}
	require.True(t, d.Allowed)
	require.Equal(t, w.numbers.burst-n, d.Remaining)
	was := w.clock.nanos.Load()
	w.clock.set(max(was, at))
	var gone []string
	for _, key := range rivals {
		if w.limiter.TakeAt(w.limiter.Key(key), 0, time.Unix(0, at)).ResetAfter == 0 {
			gone = append(gone, key)
		}
	}
	w.clock.set(was)
	require.Len(t, gone, 1, "I7: one was forgotten")
	least := w.model.Debt(gone[0], at)
	for _, key := range rivals {
		require.LessOrEqual(t, least.Cmp(w.model.Debt(key, at)), 0, "%s has less debt", key)
	}
	w.want.Evictions++
	w.want.Forgiven += ceil(least)
	w.forget(gone[0])
	return false
}
