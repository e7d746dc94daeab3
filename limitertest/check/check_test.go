package check

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plain computes, from the definition of a promise, by how much a request of n tokens and the requests admitted before
// exceed the limit. For a refused request, the result shows whether there was room.
type plain func(l Limit, admitted []Event, at time.Duration, n *big.Int) (excess *big.Rat)

func integer(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

// tokens returns the sum of the tokens of the events whose times its last argument accepts.
func tokens(events []Event, of func(at int64) bool) *big.Int {
	sum := new(big.Int)
	for _, e := range events {
		if of(int64(e.At)) {
			sum.Add(sum, big.NewInt(e.N))
		}
	}
	return sum
}

// overEveryInterval returns the largest excess of all intervals that end now, including the n tokens of the request.
// Its last argument computes how many tokens come back in an interval.
func overEveryInterval(l Limit, admitted []Event, at time.Duration, n *big.Int, returns func(from, to int64) *big.Rat) *big.Rat {
	worst := new(big.Rat).SetInt(new(big.Int).Sub(n, integer(l.Burst)))
	sum := new(big.Int).Set(n)
	for _, e := range slices.Backward(admitted) {
		sum.Add(sum, big.NewInt(e.N))
		excess := new(big.Rat).SetInt(new(big.Int).Sub(sum, integer(l.Burst)))
		if excess.Sub(excess, returns(int64(e.At), int64(at))); excess.Cmp(worst) > 0 {
			worst = excess
		}
	}
	return worst
}

func down(at, per int64) int64 {
	quotient, _ := new(big.Int).DivMod(big.NewInt(at), big.NewInt(per), new(big.Int))
	return quotient.Int64()
}

var plains = map[Promise]plain{
	Bucket: func(l Limit, admitted []Event, at time.Duration, n *big.Int) *big.Rat {
		return overEveryInterval(l, admitted, at, n, func(from, to int64) *big.Rat {
			return new(big.Rat).SetFrac(new(big.Int).Mul(integer(l.Tokens), big.NewInt(to-from)), big.NewInt(int64(l.Per)))
		})
	},
	BatchRefill: func(l Limit, admitted []Event, at time.Duration, n *big.Int) *big.Rat {
		return overEveryInterval(l, admitted, at, n, func(from, to int64) *big.Rat {
			batches := down(to, int64(l.Per)) - down(from, int64(l.Per))
			return new(big.Rat).SetInt(new(big.Int).Mul(integer(l.Tokens), big.NewInt(batches)))
		})
	},
	FixedWindow: func(l Limit, admitted []Event, at time.Duration, n *big.Int) *big.Rat {
		start := int64(math.MinInt64)
		for _, e := range admitted {
			if start == math.MinInt64 || int64(e.At) >= start+int64(l.Per) {
				start = int64(e.At)
			}
		}
		if start != math.MinInt64 && int64(at) >= start+int64(l.Per) {
			start = int64(at)
		}
		sum := tokens(admitted, func(at int64) bool { return at >= start })
		return new(big.Rat).SetInt(sum.Sub(sum.Add(sum, n), integer(l.Tokens)))
	},
	AlignedWindow: func(l Limit, admitted []Event, now time.Duration, n *big.Int) *big.Rat {
		sum := tokens(admitted, func(at int64) bool { return down(at, int64(l.Per)) == down(int64(now), int64(l.Per)) })
		return new(big.Rat).SetInt(sum.Sub(sum.Add(sum, n), integer(l.Tokens)))
	},
	SlidingExact: func(l Limit, admitted []Event, now time.Duration, n *big.Int) *big.Rat {
		sum := tokens(admitted, func(at int64) bool { return int64(now)-at < int64(l.Per) })
		return new(big.Rat).SetInt(sum.Sub(sum.Add(sum, n), integer(l.Tokens)))
	},
	SlidingEstimate: func(l Limit, admitted []Event, now time.Duration, n *big.Int) *big.Rat {
		per, index := int64(l.Per), down(int64(now), int64(l.Per))
		estimate := tokens(admitted, func(at int64) bool { return down(at, per) == index-1 })
		share := new(big.Rat).SetFrac(estimate.Mul(estimate, big.NewInt((index+1)*per-int64(now))), big.NewInt(per))
		sum := tokens(admitted, func(at int64) bool { return down(at, per) == index })
		return share.Add(share, new(big.Rat).SetInt(sum.Sub(sum.Add(sum, n), integer(l.Tokens))))
	},
}

// excesses returns the excess of a SlidingEstimate with its share rounded down (loose) and up (strict). Other promises
// have one excess.
func excesses(p Promise, excess *big.Rat) (loose, strict *big.Int) {
	one := big.NewInt(1)
	loose, rest := new(big.Int).DivMod(excess.Num(), excess.Denom(), new(big.Int))
	strict = new(big.Int).Set(loose)
	if rest.Sign() > 0 {
		if strict.Add(strict, one); p != SlidingEstimate {
			loose.Set(strict)
		}
	}
	return loose, strict
}

func randomLimit(random *rand.Rand) Limit {
	return Limit{1 + random.Uint64N(5), 1 + time.Duration(random.Int64N(12)), 1 + random.Uint64N(5)}
}

func randomLog(random *rand.Rand) (log []Event) {
	at := time.Duration(random.Int64N(40) - 20)
	for range 1 + random.IntN(30) {
		log = append(log, Event{At: at, N: 1 + random.Int64N(3), Allowed: random.IntN(2) > 0})
		at += time.Duration(random.Int64N(6) * random.Int64N(2))
	}
	return log
}

// TestEveryVerdictIsThatOfThePlainPromise compares the verdicts of a Checker with sums over all intervals.
func TestEveryVerdictIsThatOfThePlainPromise(t *testing.T) {
	for p, wrong := range plains {
		t.Run(p.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, uint64(p)))
			tooMany, tooEarly := 0, 0
			for range 1500 {
				l, log := randomLimit(random), randomLog(random)
				c, err := New(l, p)
				require.NoError(t, err)
				var admitted []Event
				for i, e := range log {
					loose, strict := excesses(p, wrong(l, admitted, e.At, big.NewInt(e.N)))
					wait := c.Until("", e.At, uint64(e.N))
					require.Equal(t, strict.Sign() <= 0, wait == 0, "%v %v", l, log[:i+1])
					if _, sooner := excesses(p, wrong(l, admitted, e.At+wait-1, big.NewInt(e.N))); wait > 0 && wait < Never {
						_, then := excesses(p, wrong(l, admitted, e.At+wait, big.NewInt(e.N)))
						require.LessOrEqual(t, then.Sign(), 0, "%v %v: %v", l, log[:i+1], wait)
						require.Positive(t, sooner.Sign(), "%v %v: %v", l, log[:i+1], wait)
					} else if wait == Never {
						require.Greater(t, uint64(e.N), l.Capacity(p))
					}
					v := c.Add(e)
					if e.Allowed {
						require.Zero(t, v.Late)
						require.Equal(t, max(loose.Int64(), 0), int64(v.Excess), "%v %v", l, log[:i+1])
						require.Equal(t, v.Excess > 0, v.Early > 0, "%v %v", l, log[:i+1])
						admitted = append(admitted, e)
						tooMany += int(min(v.Excess, 1))
						continue
					}
					require.Zero(t, v.Excess)
					require.Equal(t, strict.Sign() <= 0, v.Late > 0, "%v %v", l, log[:i+1])
					tooEarly += int(min(v.Late, 1))
				}
			}
			assert.Greater(t, tooMany, 500)
			assert.Greater(t, tooEarly, 500)
		})
	}
}

// roomFor computes from the definition for how long there has been room for n more tokens and all tokens admitted
// since. It counts nanoseconds backward from now, and stops at the number in its last argument.
func roomFor(p Promise, l Limit, admitted []Event, at time.Duration, n uint64, most int) (late time.Duration) {
	for ; int(late) < most; late++ {
		u, more, before := at-late, new(big.Int).SetUint64(n), []Event{}
		for _, e := range admitted {
			if e.At <= u {
				before = append(before, e)
			} else {
				more.Add(more, big.NewInt(e.N))
			}
		}
		if _, strict := excesses(p, plains[p](l, before, u, more)); strict.Sign() > 0 {
			break
		}
	}
	return late
}

// TestLateIsSinceThereWasRoom: Late begins when there was room for the request and everything admitted since, not at
// the latest charge.
func TestLateIsSinceThereWasRoom(t *testing.T) {
	const most = 300
	for p := range plains {
		t.Run(p.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(9, uint64(p)))
			wrong, beyond := 0, 0
			for range 1500 {
				l, log := randomLimit(random), randomLog(random)
				c, err := New(l, p)
				require.NoError(t, err)
				var admitted []Event
				for i, e := range log {
					v := c.Add(e)
					if e.Allowed {
						admitted = append(admitted, e)
						continue
					}
					want := roomFor(p, l, admitted, e.At, uint64(e.N), most)
					require.Equal(t, want, min(v.Late, most), "%v %v", l, log[:i+1])
					if want > 0 && want < most {
						if wrong++; want > e.At-admitted[len(admitted)-1].At+1 {
							beyond++
						}
					}
				}
			}
			assert.Greater(t, wrong, 400)
			assert.Greater(t, beyond, 30, "there was room before the latest charge")
		})
	}
}

// TestALimiterThatIsLate: no refusal is reported if all tokens come back later by LateBy. If they come back one
// nanosecond later still, refusals are reported, however many other requests are admitted.
func TestALimiterThatIsLate(t *testing.T) {
	const late = 3
	l := Limit{2, 10, 6}
	for _, c := range []struct {
		lateBy time.Duration
		wrong  bool
	}{{late, false}, {late - 1, true}} {
		wrong := 0
		for seed := range uint64(40) {
			random := rand.New(rand.NewPCG(1, seed))
			model, err := New(l, Bucket)
			require.NoError(t, err)
			model.LateBy = c.lateBy
			admitted := []Event{}
			for at := time.Duration(0); at < 300; at += time.Duration(random.Int64N(4)) {
				n := 1 + random.Int64N(6)
				e := Event{At: at, N: n, Allowed: roomFor(Bucket, l, admitted, at, uint64(n), late+1) > late}
				if model.Add(e); e.Allowed {
					admitted = append(admitted, e)
				}
			}
			assert.Zero(t, model.Report().Excess)
			wrong += model.Report().RefusedEarly
		}
		assert.Equal(t, c.wrong, wrong > 0, c)
	}
}

// TestACounterexampleIsShortest: a counterexample shows the fault. If any one of its requests is removed, it no longer
// shows the fault. (If windows begin with a request, the first request is an exception.)
func TestACounterexampleIsShortest(t *testing.T) {
	for p := range plains {
		t.Run(p.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(5, uint64(p)))
			for range 2000 {
				l, log := randomLimit(random), randomLog(random)
				r, err := Log(l, p, log)
				require.NoError(t, err)
				again, err := Log(l, p, r.Counterexample)
				require.NoError(t, err)
				switch {
				case r.OK():
					require.Empty(t, r.Counterexample)
				case r.Excess == 0:
					require.Equal(t, 1, again.RefusedEarly, "%v\n%v", l, r)
				default:
					require.Positive(t, again.Excess, "%v\n%v", l, r)
					for i := range r.Counterexample {
						without, err := Log(l, p, slices.Delete(slices.Clone(r.Counterexample), i, i+1))
						require.NoError(t, err)
						require.True(t, i == 0 && p == FixedWindow || without.Excess == 0, "%v\n%v", l, r)
					}
				}
			}
		})
	}
}

// TestShrinkEnds: if the majority of a large log's items is needed, Shrink does not call its last argument n squared
// times.
func TestShrinkEnds(t *testing.T) {
	calls := 0
	part := Shrink(make([]int, 30_000), 100, func(part []int) bool {
		calls++
		return len(part) > 10_000
	})
	assert.Equal(t, 100, calls)
	assert.Greater(t, len(part), 10_000)
	assert.Less(t, len(part), 20_000)
}

// TestLargeNumbers: nothing overflows at the first and the last instant, or with the largest limits.
func TestLargeNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	number := func(bits int) uint64 { return max(random.Uint64()>>(64-bits)>>random.IntN(bits), 1) }
	for range 5000 {
		l := Limit{number(64), time.Duration(number(63)), number(64)}
		log := []Event{}
		for range 1 + random.IntN(8) {
			e := Event{At: time.Duration(number(63)), N: int64(number(63)), Allowed: random.IntN(3) > 0}
			if random.IntN(2) == 0 {
				e.At = -e.At
			}
			log = append(log, e)
		}
		for _, p := range Promises() {
			r, err := Log(l, p, log)
			require.NoError(t, err)
			require.Equal(t, r.Excess > 0, r.Early > 0, "%v %v %v\n%v", l, p, log, r)
		}
	}
	l := Limit{1_000_000_000, time.Second, 1_000_000}
	r, err := Log(l, Bucket, []Event{{At: math.MinInt64, N: 1_000_000, Allowed: true}, {At: math.MaxInt64, N: 1_000_000, Allowed: true},
		{At: math.MaxInt64, N: math.MaxInt64, Allowed: true}})
	require.NoError(t, err)
	assert.Equal(t, uint64(math.MaxInt64), r.Excess)
	assert.Equal(t, Never, r.Early)
	assert.Len(t, r.Counterexample, 1)
}

// TestOneNanosecond: at 3 tokens in 10 ns, tokens are not whole nanoseconds apart. The smallest excess is found.
func TestOneNanosecond(t *testing.T) {
	l := Limit{3, 10, 1} // a token is available after 4 ns, but not after 3 ns
	for after, excess := range map[time.Duration]uint64{3: 1, 4: 0} {
		r, err := Log(l, Bucket, []Event{{N: 1, Allowed: true}, {At: after, N: 1, Allowed: true}})
		require.NoError(t, err)
		assert.Equal(t, excess, r.Excess, after)
		r, err = Log(l, Bucket, []Event{{N: 1, Allowed: true}, {At: after, N: 1}})
		require.NoError(t, err)
		assert.Equal(t, after == 4, r.RefusedEarly == 1, after)
	}
	c, err := New(l, Bucket)
	require.NoError(t, err)
	c.EarlyBy, c.LateBy = 1, 2
	assert.True(t, c.Log([]Event{{N: 1, Allowed: true}, {At: 3, N: 1, Allowed: true}, {At: 8, N: 1}}).OK())
}

// TestALeakyQueue: requests that arrive fill a bucket, and requests leave the bucket one by one.
func TestALeakyQueue(t *testing.T) {
	l := Limit{1, 10, 2}
	for _, c := range []struct {
		waits  []time.Duration
		excess uint64
	}{{[]time.Duration{0, 10}, 0}, {[]time.Duration{0, 9}, 1}, {[]time.Duration{0, 0}, 1}, {[]time.Duration{0, 10, 20}, 1}} {
		var log []Event
		for _, wait := range c.waits {
			log = append(log, Event{N: 1, Allowed: true, Wait: wait})
		}
		r, err := Log(l, LeakyQueue, log)
		require.NoError(t, err)
		assert.Equal(t, c.excess, r.Excess, c)
	}
	r, err := Log(l, LeakyQueue, []Event{{N: 2, Allowed: true}, {At: 10, N: 1, Allowed: true, Wait: 10}})
	require.NoError(t, err)
	assert.True(t, r.OK(), r)
}

// TestKeysAreApart: each key has its own model, and a log may be in any order.
func TestKeysAreApart(t *testing.T) {
	l := Limit{1, time.Second, 1}
	r, err := Log(l, Bucket, []Event{{At: 2, Key: "b", N: 1, Allowed: true}, {At: 1, Key: "a", N: 1, Allowed: true},
		{At: 3, Key: "b", N: 1}, {At: 4, Key: "c", N: 0}, {At: 4, Key: "c", N: -1, Allowed: true}})
	require.NoError(t, err)
	assert.True(t, r.OK(), r)
	assert.Equal(t, [3]int{5, 3, 2}, [3]int{r.Events, r.Admitted, r.Refused})

	r, err = Log(l, Bucket, []Event{{At: 5, Key: "b", N: 1, Allowed: true}, {At: 1, Key: "a", N: 1, Allowed: true},
		{At: 4, Key: "b", N: 1, Allowed: true}, {At: 3, Key: "c", N: 1}})
	require.NoError(t, err)
	assert.Equal(t, []Event{{At: 4, Key: "b", N: 1, Allowed: true}, {At: 5, Key: "b", N: 1, Allowed: true}}, r.Counterexample)
	assert.Equal(t, Window{4, 5, 2}, r.Worst)
	assert.Equal(t, time.Second-1, r.Early)
	assert.Equal(t, 1, r.RefusedEarly)
	assert.Contains(t, r.String(), "1 too many: 2 admitted within 1ns, by up to 999.999999ms too early")
}

// TestAnEarlierEventComesWithTheLatest: an event that is earlier than the latest event counts at the time of the latest
// event.
func TestAnEarlierEventComesWithTheLatest(t *testing.T) {
	c, err := New(Limit{1, 10, 1}, Bucket)
	require.NoError(t, err)
	require.Zero(t, c.Add(Event{At: 100, N: 1, Allowed: true}))
	assert.Equal(t, time.Duration(100), c.Until("", 10, 1))
	assert.Equal(t, Verdict{Excess: 1, Early: 10}, c.Add(Event{At: 0, N: 1, Allowed: true}))
}

// TestWhatCannotBe: for a limit that cannot exist, the error names the bad number.
func TestWhatCannotBe(t *testing.T) {
	for _, c := range []struct {
		limit   Limit
		promise Promise
		says    string
	}{
		{Limit{0, 1, 1}, Bucket, "0 tokens"}, {Limit{1, 0, 1}, FixedWindow, "a period of 0s"},
		{Limit{1, -1, 1}, FixedWindow, "a period of -1ns"}, {Limit{1, 1, 0}, LeakyQueue, "a burst of 0"},
		{Limit{1, 1, 1}, Promise(200), "promise 200"},
	} {
		_, err := Log(c.limit, c.promise, nil)
		assert.ErrorContains(t, err, c.says)
	}
	_, err := New(Limit{1, 1, 0}, SlidingExact)
	assert.NoError(t, err)
	assert.Equal(t, "Promise(200)", fmt.Sprint(Promise(200)))
}
