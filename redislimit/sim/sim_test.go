package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/defaults"
)

func run(t *testing.T, change func(*Scenario)) *Report {
	t.Helper()
	s := Default()
	change(&s)
	if testing.Short() && s.Time > time.Second {
		t.Skip("a simulation is one goroutine: the race detector shows nothing of it")
	}
	r, err := Run(t.Context(), s, nil)
	require.NoError(t, err)
	require.Len(t, r.Results, len(s.Strategies))
	return r
}

func TestTheSeedDecides(t *testing.T) {
	with := func(seed uint64) *Report {
		return run(t, func(s *Scenario) {
			s.Seed, s.Keys, s.Nodes, s.Jitter, s.Loss, s.Time = seed, 50, 7, s.RTT/2, 0.02, 200*time.Millisecond
		})
	}
	assert.Equal(t, with(3), with(3))
	assert.NotEqual(t, with(3).Offered, with(4).Offered)
}

func TestStrictIsTheIdeal(t *testing.T) {
	for _, load := range []float64{0.8, 1, 2, 10} {
		r := run(t, func(s *Scenario) {
			s.Load, s.Keys, s.Rate, s.Burst = load, 20, engine.Per(700, 900*time.Millisecond), 30
			s.Strategies = []Strategy{Strict()}
		})
		o := r.Results[0]
		assert.Equal(t, r.Ideal, o.Admitted)
		assert.Zero(t, o.Excess+o.Refused)
		assert.LessOrEqual(t, o.Questions, r.Offered, "refusals are remembered")
		assert.True(t, o.Holds)
		if load > 1 {
			assert.InDelta(t, r.Allowed, o.FirstAdmitted, 2, "all of the bound is there to be had")
			assert.InDelta(t, 30, o.Worst, 1)
		}
	}
}

func TestLeasesKeepTheBound(t *testing.T) {
	for _, load := range []float64{0.8, 2, 10} {
		for nodes, shares := range map[string][]float64{"2": {1, 1}, "4": {1, 1, 1, 1}, "16": slices.Repeat([]float64{1}, 16), "90/5/3/2": {90, 5, 3, 2}} {
			for _, loss := range []float64{0, 0.05} {
				t.Run(fmt.Sprintf("%gx on %s nodes, %g lost", load, nodes, loss), func(t *testing.T) {
					r := run(t, func(s *Scenario) {
						s.Load, s.Nodes, s.Traffic, s.Loss = load, len(shares), shares, loss
						s.Strategies = []Strategy{Lease()}
					})
					o := r.Results[0]
					require.Empty(t, o.Note, "leases, not what stands in for them")
					assert.True(t, o.Holds, "%v beyond, of %v", o.Worst, o.WorstBound)
					assert.LessOrEqual(t, float64(o.FirstAdmitted), o.Bound)
					assert.Less(t, o.Questions, r.Offered, "fewer questions than requests")
					if loss == 0 {
						assert.Greater(t, o.FirstOfAllowed, min(load, 1)*0.97, "and the limit can be used")
						assert.Less(t, o.RefusedShare, 0.02)
					}
				})
			}
		}
	}
}

func TestLeasesHardlyRefuseBelowTheLimit(t *testing.T) {
	r := run(t, func(s *Scenario) { s.Load, s.Strategies = 0.8, []Strategy{Lease()} })
	assert.Less(t, r.Results[0].RefusedShare, 0.001)
}

// The simulation of settling later, the strategy of gateways, gives the figures in the table below, and exceeds the
// bound.
func TestSettlingLaterBreaksTheBound(t *testing.T) {
	for load, want := range map[float64][]float64{2: {1.30, 1.075, 1.016}, 10: {2.50, 1.376, 1.078}} {
		r := run(t, func(s *Scenario) { s.Load, s.Strategies = load, Strategies()[2:] })
		for i, o := range r.Results {
			// The result depends on how the intervals of the nodes overlap. This matters more for longer intervals, so
			// the tolerance grows.
			assert.InDelta(t, want[i], o.FirstOfLimit, 0.02+0.15*(want[i]-1), "%gx %s", load, o.Strategy)
			if load == 10 {
				assert.False(t, o.Holds, o.Strategy)
				assert.Greater(t, float64(o.FirstAdmitted), o.Bound)
			}
		}
	}
}

// The simulation checks every interval, because a total does not show that many tokens were admitted at once.
func TestTheWorstIntervalIsFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := Default()
		w := newWorld(&s, 0)
		type moment struct {
			at       int64
			admitted float64
			held     float64
		}
		var all []moment
		admitted, held, worst := 0.0, 0.0, 0.0
		for range 60 {
			w.now += random.Int64N(3) * int64(time.Millisecond)
			all = append(all, moment{w.micros(), admitted, held})
			switch random.IntN(3) {
			case 0:
				n := random.Int64N(5)
				w.addHeld(0, n)
				held += float64(n)
			case 1:
				if held > 0 {
					w.addHeld(0, -1)
					held--
				}
			case 2:
				w.admit(0, 1)
				admitted++
				for _, from := range all {
					worst = max(worst, admitted-from.admitted-w.rate*float64(w.micros()-from.at)-from.held)
				}
			}
		}
		require.InDelta(t, worst, w.keys[0].excess, rounding)
	}
}

// A node sends each question in a separate call while it has fewer than eight calls in progress.
func TestQuestionsTravelTogether(t *testing.T) {
	with := func(trip time.Duration) (Result, *Report) {
		r := run(t, func(s *Scenario) {
			s.Nodes, s.RTT, s.Timeout, s.Strategies = 1, trip, time.Second, []Strategy{Strict()}
			s.OnLoss = redislimit.FailClosed // otherwise charges of shares would also be questions
			s.Rate, s.Load = engine.PerSecond(20_000), 0.5
		})
		return r.Results[0], r
	}
	alone, r := with(100 * time.Microsecond)
	assert.Equal(t, r.Offered, alone.Questions)
	assert.InEpsilon(t, alone.Questions, alone.Calls, 0.001)
	together, r := with(10 * time.Millisecond)
	assert.Equal(t, r.Offered, together.Questions)
	assert.InDelta(t, r.Ideal, together.Admitted, 10, "what came when all had ended is there to be had")
	assert.InEpsilon(t, 10*defaults.MaxCalls/0.01, together.Calls, 0.01, "eight calls all the time")
	// More questions come than fit into eight calls, so the node makes more calls, which are full.
	full, r := with(100 * time.Millisecond)
	assert.Equal(t, r.Offered, full.Questions)
	assert.Less(t, full.Calls, r.Offered/10)
}

// A loss of the store raises the bound of the excess.
func TestAStoreThatIsAway(t *testing.T) {
	with := func(onLoss redislimit.FailurePolicy, from, to time.Duration) []Result {
		return run(t, func(s *Scenario) {
			s.Away, s.OnLoss, s.Strategies = Span{from, to}, onLoss, []Strategy{Strict(), Lease()}
		}).Results
	}
	never := with(redislimit.FailShare, 0, 0)
	for _, away := range []time.Duration{60 * time.Millisecond, 2 * time.Second} {
		for i, o := range with(redislimit.FailShare, 2*time.Second, 2*time.Second+away) {
			assert.True(t, o.Holds, "%s: %v beyond, of %v", o.Strategy, o.Worst, o.WorstBound)
			assert.Equal(t, never[i].WorstBound+2*200, o.WorstBound)
			if away > time.Second {
				if o.Strategy == "strict" { // leases refuse while their debt is paid, and end with less excess
					assert.Greater(t, o.Worst, never[i].Worst+30, "it did cost something")
				}
				// Until the breaker opens, all calls are made. After that, each node only probes four times per second.
				assert.Less(t, o.Calls, never[i].Calls*83/100, "%s: calls to a store that is away", o.Strategy)
				assert.Greater(t, o.Calls, never[i].Calls*70/100, "%s: calls to a store that is back, when the shares are paid", o.Strategy)
			}
		}
	}
	for i, o := range with(redislimit.FailClosed, 2*time.Second, 4*time.Second) {
		assert.InEpsilon(t, 0.8*float64(never[i].Admitted), o.Admitted, 0.03, "%s admits nothing meanwhile", o.Strategy)
		assert.True(t, o.Holds, o.Strategy)
		assert.Equal(t, never[i].WorstBound, o.WorstBound)
	}
}

// If the nodes' clocks differ, this changes nothing for strict nodes, and nearly nothing for leases.
func TestClocksMayDiffer(t *testing.T) {
	with := func(skew time.Duration) *Report {
		return run(t, func(s *Scenario) {
			s.Skew, s.Load = skew, 2
			s.Strategies = []Strategy{Strict(), Lease()}
		})
	}
	none, hour := with(0), with(time.Hour)
	assert.Equal(t, none.Results[0], hour.Results[0])
	assert.InEpsilon(t, none.Results[1].Admitted, hour.Results[1].Admitted, 0.005)
	assert.True(t, hour.Results[1].Holds)
}

func TestLossesAreNeverMore(t *testing.T) {
	r := run(t, func(s *Scenario) {
		s.Load, s.Loss, s.OnLoss, s.Strategies = 2, 0.3, redislimit.FailClosed, []Strategy{Strict(), Lease()}
	})
	for _, o := range r.Results {
		assert.Less(t, o.Admitted, r.Ideal, o.Strategy)
		assert.True(t, o.Holds)
	}
}

// The simulation chooses leases for the same limits as a real limiter does.
func TestTheModeIsTheProducts(t *testing.T) {
	for _, perSecond := range []float64{99, 100} {
		r := run(t, func(s *Scenario) { s.Rate, s.Strategies = engine.PerSecond(perSecond), []Strategy{Lease()} })
		leased := redislimit.Check("sim", engine.TokenBucket(engine.PerSecond(perSecond), 200), redislimit.InMode(redislimit.Leased)) == nil
		assert.Equal(t, perSecond >= 100, leased)
		assert.Equal(t, leased, r.Results[0].Note == "", "%v/s: %s", perSecond, r.Results[0].Note)
	}
}

func TestSmallLimitsAreStrict(t *testing.T) {
	r := run(t, func(s *Scenario) { s.Nodes, s.Burst, s.Strategies = 100, 50, []Strategy{Lease()} })
	assert.Equal(t, r.Offered, r.Results[0].Questions)
	assert.Contains(t, r.Results[0].Note, "too small for leases on 100 nodes")
	assert.Equal(t, 50.0, r.Results[0].WorstBound)
}

func TestManyKeysFollowZipf(t *testing.T) {
	s := Default()
	l := newLottery(s.keyWeights())
	assert.Equal(t, 1.0, l.total)
	s.Keys = 4
	l = newLottery(s.keyWeights())
	random, drawn := rand.New(rand.NewPCG(1, 1)), make([]float64, 4)
	const draws = 200_000
	for range draws {
		drawn[l.draw(random)]++
	}
	for i, n := range drawn {
		assert.InDelta(t, 1/float64(i+1)/(1+1./2+1./3+1./4), n/draws, 0.01)
	}
}

func TestTheQueueIsInOrder(t *testing.T) {
	random, q := rand.New(rand.NewPCG(1, 1)), eventQueue{}
	for range 3000 {
		q.put(event{at: random.Int64N(100)})
		if random.IntN(4) == 0 {
			q.take()
		}
	}
	last := q.take()
	for len(q.heap) > 0 {
		e := q.take()
		require.True(t, last.before(&e))
		last = e
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Scenario){
		"0 nodes":               func(s *Scenario) { s.Nodes = 0 },
		"-1 keys":               func(s *Scenario) { s.Keys = -1 },
		"exponent of 9":         func(s *Scenario) { s.Zipf = 9 },
		"rate of 0.5/s":         func(s *Scenario) { s.Rate = engine.PerSecond(0.5) },
		"rate of 1/1ns":         func(s *Scenario) { s.Rate = engine.Per(1, 1) },
		"burst of 0":            func(s *Scenario) { s.Burst = 0 },
		"(10 years)":            func(s *Scenario) { s.Burst, s.Rate = 1e9, engine.Per(1, 24*time.Hour) },
		"load of 0":             func(s *Scenario) { s.Load = 0 },
		"0s of simulated time":  func(s *Scenario) { s.Time = 0 },
		"round trip of 2s":      func(s *Scenario) { s.RTT = 2 * time.Second },
		"jitter of 2ms":         func(s *Scenario) { s.Jitter = 2 * time.Millisecond },
		"loss of 1":             func(s *Scenario) { s.Loss = 1 },
		"timeout of 999µs":      func(s *Scenario) { s.Timeout = 999 * time.Microsecond },
		"timeout of 11s":        func(s *Scenario) { s.Timeout = 11 * time.Second },
		"-1 partitions":         func(s *Scenario) { s.Partitions = -1 },
		"1000000 queues":        func(s *Scenario) { s.Nodes, s.Partitions = 10_000, 101 },
		"want 0 to 2 while":     func(s *Scenario) { s.Partitions, s.AwayPartitions, s.Away = 2, 3, Span{0, time.Second} },
		"1 partitions that are": func(s *Scenario) { s.Partitions, s.AwayPartitions = 2, 1 },
		"away from 1s to 1s":    func(s *Scenario) { s.Away = Span{time.Second, time.Second} },
		"away from 9s to 11s":   func(s *Scenario) { s.Away = Span{9 * time.Second, 11 * time.Second} },
		"skew of -1ns":          func(s *Scenario) { s.Skew = -1 },
		"Overdraft(1001)":       func(s *Scenario) { s.Overdraft = 1001 },
		"Overdraft(101): want":  func(s *Scenario) { s.Overdraft = 101 },
		"fail open admit":       func(s *Scenario) { s.OnLoss = redislimit.FailOpen },
		"2 shares for 4 nodes":  func(s *Scenario) { s.Traffic = []float64{1, 2} },
		"share -1 of node 2":    func(s *Scenario) { s.Traffic = []float64{1, -1, 1, 1} },
		"add up to 0":           func(s *Scenario) { s.Traffic = make([]float64, 4) },
		"no strategies":         func(s *Scenario) { s.Strategies = nil },
		"without a kind":        func(s *Scenario) { s.Strategies = make([]Strategy, 1) },
		"settle-later every 0s": func(s *Scenario) { s.Strategies = []Strategy{SettleLater(0)} },
	} {
		s := Default()
		change(&s)
		_, err := Run(t.Context(), s, nil)
		assert.ErrorContains(t, err, want)
	}
}

func TestStrategiesHaveNames(t *testing.T) {
	for _, s := range Strategies() {
		got, err := ParseStrategy(s.String())
		assert.NoError(t, err)
		assert.Equal(t, s, got)
	}
	for title, s := range map[string]Strategy{
		"strict": Strict(), "leased": Lease(), "settling later every 200 ms": SettleLater(200 * time.Millisecond),
		"settling later every 1.5 s": SettleLater(1500 * time.Millisecond), "settling later every 60 s": SettleLater(time.Minute),
	} {
		assert.Equal(t, title, s.Title())
	}
	for _, name := range []string{"", "lax", "settle-later-", "settle-later-soon", "settle-later-1us"} {
		_, err := ParseStrategy(name)
		assert.Error(t, err, name)
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var seen []Progress
	_, err := Run(ctx, Default(), func(p Progress) { seen = append(seen, p); cancel() })
	assert.ErrorIs(t, err, context.Canceled)
	require.Len(t, seen, 1)
	assert.Equal(t, "ideal", seen[0].Doing)
	assert.Less(t, seen[0].Done, 0.01)
}

func TestTheTableSaysWhatBroke(t *testing.T) {
	r := run(t, func(s *Scenario) { s.Time, s.Keys = time.Second, 3 })
	var out strings.Builder
	require.NoError(t, r.WriteTable(&out))
	assert.Regexp(t, `(?m)^strict +\d+ +.* holds$`, out.String())
	assert.Regexp(t, `(?m)^settle-later-200ms +\d+ +.* BROKEN$`, out.String())
	assert.Contains(t, out.String(), "of which 3 were asked for")
}

// After the idle lease of a key was forgotten, the key's next lease brings no new overdraft.
func TestManyNodesKeepTheBound(t *testing.T) {
	r := run(t, func(s *Scenario) {
		s.Nodes, s.Burst, s.Load, s.Time, s.Strategies = 1000, 4000, 10, 5*time.Second, []Strategy{Lease()}
	})
	assert.True(t, r.Results[0].Holds, "%+v", r.Results[0])
}
