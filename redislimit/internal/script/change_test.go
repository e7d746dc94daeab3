package script

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// changes has lists of policies of one kind, between which a test changes the limit of a key.
var changes = map[string][]engine.Policy{
	"bucket": {
		engine.TokenBucket(engine.PerSecond(97), 50), engine.TokenBucket(engine.PerSecond(1000), 10),
		engine.TokenBucket(engine.PerSecond(0.7), 500), engine.TokenBucket(engine.PerSecond(333333), 3000),
	},
	"day": {engine.TokenBucket(engine.Per(1000, 24*time.Hour), 1000), engine.TokenBucket(engine.Per(1001, 24*time.Hour), 1001), engine.TokenBucket(engine.Per(10, 24*time.Hour), 10)},
	"fixed": {
		engine.FixedWindow(10, time.Second), engine.FixedWindow(1000, time.Second), engine.FixedWindow(1, time.Second),
	},
	"aligned": {engine.FixedWindow(10, time.Second).Aligned(), engine.FixedWindow(300, time.Second).Aligned()},
	"sliding": {engine.SlidingWindow(10, time.Second), engine.SlidingWindow(1000, time.Second), engine.SlidingWindow(2, time.Second)},
	"log":     {engine.SlidingLog(10, time.Second), engine.SlidingLog(300, time.Second), engine.SlidingLog(2, time.Second)},
}

// While numbers change, the script and the model give the same answers to random asks.
func TestScriptsAreTheModelWhileNumbersChange(t *testing.T) {
	asks := 3000
	if testing.Short() {
		asks = 300
	}
	for name, policies := range changes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c, err := connect(w.Addr())
			require.NoError(t, err)
			t.Cleanup(c.Close)
			random := rand.New(rand.NewPCG(1, 9))
			var limits []*Limit
			for _, policy := range policies {
				limits = append(limits, limitOf(t, policy))
				require.Equal(t, limits[0].Kind(), limits[len(limits)-1].Kind())
			}
			var m Model
			granted, refused := 0, 0
			scale := int64(1)
			if name == "day" {
				scale = 20_000
			}
			for i := range asks {
				l := limits[min(random.IntN(4*len(limits))/3, i*len(limits)/asks)%len(limits)]
				switch random.IntN(6) {
				case 0:
					w.set(w.now + scale*random.Int64N(3_000_000))
				case 1:
					w.set(w.now - scale*random.Int64N(600_000))
				default:
					w.set(w.now + scale*random.Int64N(100_000))
				}
				if !w.Exists("key") {
					m = Model{}
				}
				a := Ask{Need: 1 + random.Uint64N(l.tokens/4+1), Window: AnyWindow}
				if random.IntN(8) > 0 {
					a.Want = a.Need
				}
				switch random.IntN(8) {
				case 0:
					a.Returned = random.Uint64N(l.tokens/8 + 2)
				case 1:
					a.Debt = random.Uint64N(l.tokens + 2)
				}
				got, want := one(t, l, c, "key", a), m.Ask(l, w.now, a)
				require.Equal(t, want, got, "ask %d at %d: %v %+v, %+v", i, w.now, l.arguments, a, m)
				if got.Granted > 0 {
					granted++
				}
				if got.RetryAfter > 0 && got.RetryAfter != engine.Never {
					refused++
					later := m.copy()
					assert.GreaterOrEqual(t, later.Ask(l, w.now+got.RetryAfter.Microseconds(), Ask{Need: a.Need, Want: a.Need}).Granted, a.Need, "%+v", a)
					sooner := m.copy()
					assert.Zero(t, sooner.Ask(l, w.now+got.RetryAfter.Microseconds()-1, Ask{Need: a.Need, Want: a.Need}).Granted, "%+v", a)
				}
			}
			assert.Greater(t, granted, asks/50)
			assert.Greater(t, refused, asks/50)
		})
	}
}

// While numbers change, a bucket grants at most the largest burst plus the tokens of the largest rate.
func TestChangesHandOutNoSecondLimit(t *testing.T) {
	for name, policies := range changes {
		t.Run(name, func(t *testing.T) {
			burst, rate, window := uint64(0), 0.0, time.Duration(0)
			var limits []*Limit
			for _, policy := range policies {
				burst, rate = max(burst, policy.Limit()), max(rate, policy.Rate().PerSecond())
				if policy.Algorithm() != engine.AlgorithmTokenBucket {
					window = policy.Window()
				}
				limits = append(limits, limitOf(t, policy))
			}
			random := rand.New(rand.NewPCG(4, 9))
			for round := range 20 {
				var m Model
				now, total := int64(1_800_000_000_000_000), uint64(0)
				var at []int64      // times of the grants
				var before []uint64 // the total granted before each of them
				for i := range 400 {
					if random.IntN(10) == 0 {
						now += random.Int64N(1_500_000)
					} else {
						now += random.Int64N(3000)
					}
					l := limits[(i/(1+round*3))%len(limits)]
					n := 1 + random.Uint64N(l.tokens)
					a := m.Ask(l, now, Ask{Need: 1, Want: n})
					if a.Granted == 0 {
						continue
					}
					at, before = append(at, now), append(before, total)
					total += a.Granted
					for j := range at {
						admitted, seconds := total-before[j], float64(now-at[j])/1e6
						most := float64(burst) + rate*seconds + 1
						switch {
						case window > 0 && name == "fixed":
							most = float64(burst) * (math.Floor(seconds/window.Seconds()) + 2)
						case window > 0:
							most = float64(burst) * (math.Ceil(seconds/window.Seconds()) + 1)
						}
						require.LessOrEqual(t, float64(admitted), most, "round %d, %v s", round, seconds)
					}
				}
				require.Positive(t, total)
			}
		})
	}
}

// After a change of its limit, a key still owes exactly the tokens that it took before.
func TestAChangeKeepsTheTokens(t *testing.T) {
	c := start(t)
	for name, of := range map[string]func(limit uint64) engine.Policy{
		"bucket":  func(n uint64) engine.Policy { return engine.TokenBucket(engine.Per(float64(n), 24*time.Hour), n) },
		"fixed":   func(n uint64) engine.Policy { return engine.FixedWindow(n, 24*time.Hour) },
		"aligned": func(n uint64) engine.Policy { return engine.FixedWindow(n, 24*time.Hour).Aligned() },
		"sliding": func(n uint64) engine.Policy { return engine.SlidingWindow(n, 24*time.Hour) },
		"log":     func(n uint64) engine.Policy { return engine.SlidingLog(n, 24*time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			key := fmt.Sprint("key of ", name)
			thousand, more, ten := limitOf(t, of(1000)), limitOf(t, of(1001)), limitOf(t, of(10))
			require.EqualValues(t, 1000, one(t, thousand, c, key, strict(1000)).Granted)
			require.EqualValues(t, 1, one(t, more, c, key, Ask{}).Remaining)
			require.EqualValues(t, 0, one(t, ten, c, key, Ask{}).Remaining)
			require.EqualValues(t, 0, one(t, ten, c, key, strict(1)).Granted)
			require.EqualValues(t, 0, one(t, thousand, c, key, strict(1)).Granted, "no second limit after 1000, 10, 1000")
			require.EqualValues(t, 1, one(t, more, c, key, strict(1)).Granted)
			require.EqualValues(t, 0, one(t, more, c, key, strict(1)).Granted)
			require.EqualValues(t, 0, one(t, thousand, c, key, Ask{Returned: 1, Window: AnyWindow, Need: 1, Want: 1}).Granted)
		})
	}
}
