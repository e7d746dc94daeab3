package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/lease"
)

// until has everything happen until a time.
func (w *world) until(t time.Duration, l limiting) {
	for len(w.events.heap) > 0 && w.events.heap[0].at <= int64(t) {
		e := w.events.take()
		w.now = e.at
		l.happen(e)
	}
	w.now = int64(t)
}

func TestWhatWaitsIsBounded(t *testing.T) {
	s := Default()
	p := newStrict(newWorld(&s, 0))
	for range defaults.UnderWay + defaults.Waiting {
		assert.Equal(t, len(p.queues[0].waiting) > defaults.BusyAbove, p.isBusy(0))
		require.True(t, p.put(0, question{}))
	}
	assert.False(t, p.put(0, question{}))
	assert.True(t, p.put(1, question{}), "another node's queue is its own")
	p.until(time.Second, p)
	assert.EqualValues(t, defaults.UnderWay+defaults.Waiting+1, p.questions)
	assert.EqualValues(t, defaults.UnderWay+defaults.Waiting/defaults.PerCall+1, p.calls)
	assert.False(t, p.isBusy(0))
	assert.Len(t, p.free, len(p.under), "no call is under way")
}

// Who waited for longer than the timeout has gone: what the store takes for them is lost.
func TestWhoWaitsTooLongIsRefused(t *testing.T) {
	r := run(t, func(s *Scenario) {
		s.Nodes, s.RTT, s.Timeout, s.Strategies = 1, 100*time.Millisecond, 150*time.Millisecond, []Strategy{Strict()}
		s.OnFailure = redislimit.FailClosed
	})
	assert.Less(t, r.Results[0].Admitted, r.Ideal/4, "the queue is most of a second long")
}

// Single answers that are lost leave a request to the node's share: the store is not lost, and both admit. What the
// share admitted is charged, but not what came back to it until then.
func TestLostAnswersAreUpToTheShare(t *testing.T) {
	for i, o := range run(t, func(s *Scenario) {
		s.Loss, s.Strategies = 0.05, []Strategy{Strict(), Lease()}
	}).Results {
		closed := run(t, func(s *Scenario) {
			s.Loss, s.OnFailure, s.Strategies = 0.05, redislimit.FailClosed, []Strategy{Strict(), Lease()}
		}).Results[i]
		assert.True(t, closed.Holds)
		if o.Strategy == "strict" {
			assert.Greater(t, o.Admitted, closed.Admitted+500)
			assert.Less(t, o.Admitted, closed.Admitted+1500, "what is lost of ten times the limit is half of it")
		}
	}
}

// What nodes hold is what they have in hand and what is on its way, whatever happened to the store.
func TestTheBooksOfWhatIsHeldBalance(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3, 4, 5} {
		s := Default()
		s.Seed, s.Load, s.Loss, s.Time, s.Away, s.Keys = seed, 0.7, 0.1, 3*time.Second, Span{time.Second, 1500 * time.Millisecond}, 4
		w := newWorld(&s, 0)
		l := newLeases(w)
		require.NoError(t, play(w, l, newArrivals(&s, newLottery(s.nodeWeights()), newLottery(s.keyWeights())), func(float64) error { return nil }))
		w.until(time.Hour, l) // all is given back
		for key := range w.keys {
			assert.Zero(t, w.keys[key].held, "of key %d", key)
		}
		assert.Positive(t, w.most)
	}
}

// Tokens in hand are kept while there is nobody to give them back to.
func TestALostStoreIsGivenNothingBack(t *testing.T) {
	s := Default()
	w := newWorld(&s, 0)
	l := newLeases(w)
	for at := range 40 {
		w.until(time.Duration(at)*time.Millisecond, l)
		l.arrive(0, 0)
	}
	held := func() (tokens uint64) {
		for _, one := range l.all.at {
			if one != (*lease.Lease)(nil) {
				n, _ := one.Held()
				tokens += n
			}
		}
		return tokens
	}
	w.until(50*time.Millisecond, l)
	had := held()
	require.Positive(t, had)
	l.queues[0].Failed(w.now, w.now+int64(defaults.BreakAfter), defaults.BreakAfter)
	require.True(t, l.isLost(0))
	w.until(time.Second, l)
	assert.Equal(t, had, held())
	l.queues[0].Succeeded(w.now)
	w.until(2*time.Second, l)
	assert.Zero(t, held())
}
