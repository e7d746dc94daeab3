package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/lease"
)

// The method until handles all events up to the time t.
func (w *world) until(t time.Duration, l strategyRun) {
	for len(w.events.heap) > 0 && w.events.heap[0].at <= int64(t) {
		e := w.events.take()
		w.now = e.at
		l.happen(e)
	}
	w.now = int64(t)
}

// No request is refused because many wait.
func TestWhatWaitsIsNotRefused(t *testing.T) {
	const sent = defaults.MaxCalls + 4*defaults.PerCall
	const asked = sent + 2*defaults.Waiting
	s := Default()
	p := newStrict(newWorld(&s, 0))
	for i := range asked {
		assert.Equal(t, i-sent > defaults.BusyAbove, p.isBusy(0, 0))
		require.True(t, p.put(0, question{cost: 1}))
	}
	p.until(time.Second, p)
	assert.EqualValues(t, asked, p.questions)
	assert.False(t, p.isBusy(0, 0))
	assert.Len(t, p.free, len(p.flights), "no call is under way")
	assert.False(t, p.queues[0].pace.Continues(), "no call is under way")
}

// A node sends as many questions as the store can answer, even with a long round trip, and drops the others.
func TestAQueueIsNoWorseThanTheStore(t *testing.T) {
	for rate, want := range map[float64]float64{
		16_000:  16_000,
		500_000: 0.9 * defaults.MaxFullCalls * defaults.PerCall / 0.04,
	} {
		r := run(t, func(s *Scenario) {
			s.Nodes, s.RTT, s.Rate, s.Burst, s.Load = 1, 40*time.Millisecond, engine.PerSecond(rate), uint64(rate/5), 0.95
			s.Time, s.OnLoss, s.Strategies = 2*time.Second, redislimit.FailClosed, []Strategy{Strict()}
		})
		assert.GreaterOrEqual(t, float64(r.Results[0].Admitted), min(2*want, 0.999*float64(r.Ideal)), "%v/s", rate)
	}
}

// The tokens that the store takes after a timeout are lost.
func TestAStoreThatIsTooSlow(t *testing.T) {
	r := run(t, func(s *Scenario) {
		s.Nodes, s.Load, s.RTT, s.Jitter, s.Timeout = 1, 2, 100*time.Millisecond, 50*time.Millisecond, 151*time.Millisecond
		s.OnLoss, s.Strategies = redislimit.FailClosed, []Strategy{Strict()}
	})
	assert.LessOrEqual(t, r.Results[0].Admitted, r.Ideal)
	assert.Positive(t, r.Results[0].Admitted)
}

// If a single answer is lost, less than the limit is admitted.
func TestLostAnswersAreUpToTheShare(t *testing.T) {
	r := run(t, func(s *Scenario) { s.Loss, s.Strategies = 0.05, []Strategy{Strict(), Lease()} })
	for _, o := range r.Results {
		assert.True(t, o.Holds, "%s: %v beyond, of %v", o.Strategy, o.Worst, o.WorstBound)
		assert.Less(t, o.Admitted, r.Ideal, o.Strategy)
		assert.Greater(t, o.Admitted, r.Ideal*92/100, o.Strategy)
	}
}

// Short stalls of the store admit a constant number of additional tokens, whatever the number of stalls.
func TestRepeatedStallsCostAConstant(t *testing.T) {
	for _, stall := range []struct{ length, every time.Duration }{
		{100 * time.Millisecond, time.Second}, {60 * time.Millisecond, 120 * time.Millisecond}, {time.Second, 3 * time.Second},
	} {
		for _, load := range []float64{2, 10} {
			var worst [2]float64
			for i, minutes := range []time.Duration{1, 4} {
				for _, o := range run(t, func(s *Scenario) {
					s.Load, s.Time, s.Strategies = load, minutes*15*time.Second, []Strategy{Strict(), Lease()}
					s.Away, s.AwayEvery = Span{time.Second, time.Second + stall.length}, stall.every
				}).Results {
					assert.True(t, o.Holds, "%v, %s: %v beyond, of %v", stall, o.Strategy, o.Worst, o.WorstBound)
					worst[i] = max(worst[i], o.Worst)
				}
			}
			assert.InDelta(t, worst[0], worst[1], 40, "%v at %gx: it grows", stall, load)
		}
	}
}

// While nodes are cut off, they admit their shares in addition to the limit.
func TestNodesThatAreCutOff(t *testing.T) {
	for _, cut := range []int{1, 3} {
		for _, o := range run(t, func(s *Scenario) {
			s.Away, s.CutOff, s.Time, s.Strategies = Span{time.Second, 21 * time.Second}, cut, 21*time.Second, []Strategy{Strict(), Lease()}
		}).Results {
			assert.True(t, o.Holds, "%d cut off, %s: %v beyond, of %v", cut, o.Strategy, o.Worst, o.WorstBound)
			most := 1 + float64(cut)/4
			assert.InDelta(t, most, o.FirstOfLimit, 0.04, "%d cut off, %s", cut, o.Strategy)
		}
	}
}

// The tokens in hand, or on their way to nodes, are counted correctly in every case of a lost store.
func TestTheBooksOfWhatIsHeldBalance(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3, 4, 5} {
		s := Default()
		s.Seed, s.Load, s.Loss, s.Time, s.Away, s.Keys = seed, 0.7, 0.1, 3*time.Second, Span{time.Second, 1500 * time.Millisecond}, 4
		if seed%2 == 0 {
			s.RTT, s.Jitter = 50*time.Millisecond, 40*time.Millisecond
		}
		w := newWorld(&s, 0)
		l := newLeases(w)
		require.NoError(t, play(w, l, newArrivals(&s, newLottery(s.nodeWeights()), newLottery(s.keyWeights())), func(float64) error { return nil }))
		w.until(time.Hour, l) // by then everything is given back
		for key := range w.keys {
			assert.Zero(t, w.keys[key].held, "of key %d", key)
		}
		assert.Positive(t, w.maxHeld)
	}
}

// While the store is lost, a node keeps its tokens in hand.
func TestALostStoreIsGivenNothingBack(t *testing.T) {
	s := Default()
	w := newWorld(&s, 0)
	l := newLeases(w)
	for at := range 40 {
		w.until(time.Duration(at)*time.Millisecond, l)
		l.arrive(0, 0, 1)
	}
	held := func() (tokens uint64) {
		for _, one := range l.leases.values {
			if one != (*lease.Lease)(nil) {
				n, _ := one.Balance()
				tokens += n
			}
		}
		return tokens
	}
	w.until(50*time.Millisecond, l)
	had := held()
	require.Positive(t, had)
	l.queues[0].Failed(w.now, w.now+int64(defaults.BreakAfter), defaults.BreakAfter)
	require.True(t, l.isLost(0, 0))
	w.until(time.Second, l)
	assert.Equal(t, had, held())
	l.queues[0].Succeeded(w.now)
	w.until(2*time.Second, l)
	assert.Zero(t, held())
}

// If the round trip is longer than the timeout, the node's share always decides.
func TestATimeoutBelowTheRoundTrip(t *testing.T) {
	for _, rtt := range []time.Duration{46 * time.Millisecond, 60 * time.Millisecond, 300 * time.Millisecond} {
		for policy, want := range map[redislimit.FailurePolicy]float64{redislimit.FailShare: 1, redislimit.FailClosed: 0} {
			r := run(t, func(s *Scenario) {
				s.RTT, s.Load, s.Timeout, s.OnLoss = rtt, 2, 50*time.Millisecond, policy
				s.Strategies = []Strategy{Strict(), Lease()}
			})
			for i, one := range r.Results {
				overdraft := float64(i * Default().Nodes * defaults.Overdraft)
				assert.InDelta(t, want*float64(r.Ideal), float64(one.Admitted), 0.02*want*float64(r.Ideal)+overdraft, "%v", rtt)
				assert.Positive(t, one.Questions, "the store is asked")
				assert.Less(t, one.Calls, r.Offered/10, "and counts as lost")
			}
		}
	}
	r := run(t, func(s *Scenario) {
		s.RTT, s.Jitter, s.Load, s.Strategies = 50*time.Millisecond, 40*time.Millisecond, 2, []Strategy{Strict(), Lease()}
	})
	for _, one := range r.Results {
		assert.True(t, one.Holds, "%s: %+v", one.Strategy, one)
		assert.LessOrEqual(t, one.Admitted, r.Ideal+r.Ideal/50, "%s", one.Strategy)
		assert.Greater(t, one.Admitted, r.Ideal/3, "%s", one.Strategy)
	}
	r = run(t, func(s *Scenario) { // questions that never reached the store leave nothing behind
		s.RTT, s.Load, s.Timeout, s.Strategies = 300*time.Millisecond, 2, 50*time.Millisecond, []Strategy{Lease()}
		s.Away = Span{time.Second, 3 * time.Second}
	})
	assert.LessOrEqual(t, r.Results[0].Admitted, r.Ideal+r.Ideal/50)
}

// A partition that is unavailable counts as lost. Other partitions are not affected.
func TestAPartitionThatIsAway(t *testing.T) {
	keys := func(partitions, away int) *Report {
		return run(t, func(s *Scenario) {
			s.Keys, s.Zipf, s.Load, s.OnLoss, s.Strategies = 8, 0, 2, redislimit.FailClosed, []Strategy{Strict(), Lease()}
			s.Away, s.Partitions, s.AwayPartitions = Span{0, s.Time}, partitions, away
		})
	}
	for i := range 2 {
		none, some, all := keys(4, 4).Results[i], keys(4, 1).Results[i], keys(1, 0).Results[i]
		assert.Equal(t, all.Admitted, none.Admitted, "all partitions are the store")
		ideal := float64(keys(4, 1).Ideal)
		assert.InDelta(t, 0.75*ideal, float64(some.Admitted), 0.02*ideal, "three of four go on")
	}
}
