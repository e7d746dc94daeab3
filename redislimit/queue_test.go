package redislimit

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// anyLimit is one of which a call carries as many keys as it can.
func anyLimit(t *testing.T) *script.Limit {
	limit, err := script.NewLimit(engine.TokenBucket(engine.PerSecond(1), 1), script.Terms{})
	require.NoError(t, err)
	return limit
}

// A question that no caller waits for is not asked: its token would be charged and never spent.
func TestQuestionsThatAreGivenUpAreNotAsked(t *testing.T) {
	var givenUp atomic.Bool
	givenUp.Store(true)
	q := queue{senders: 1, limit: anyLimit(t), client: &Client{clientConfig: clientConfig{timeout: time.Second}}, now: func() int64 { return 0 }}
	for i := range 3 * defaults.PerCall {
		one := question{
			answered: func([]script.Answer, error) { t.Error("asked") }, items: []script.Item{{Limit: q.limit, Key: string(rune('a' + i%2))}},
		}
		if i%2 == 1 {
			one.givenUp = &givenUp
		}
		q.waiting = append(q.waiting, one)
	}
	for _, want := range []int{defaults.PerCall, defaults.PerCall / 2, 0} {
		questions := q.next()
		assert.Len(t, questions, want)
		for _, one := range questions {
			assert.Equal(t, "a", one.items[0].Key)
		}
	}
	assert.Zero(t, q.senders, "the sender has ended")
	assert.Nil(t, q.waiting)
}

// A question that would not be answered in time is not asked, and its caller is told at once.
func TestQuestionsThatAreTooLateAreNotAsked(t *testing.T) {
	now := int64(0)
	q := queue{senders: 1, limit: anyLimit(t), client: &Client{clientConfig: clientConfig{timeout: time.Second}}, now: func() int64 { return now }}
	q.trip.Note(int64(300 * time.Millisecond))
	var errs []error
	for since := range 10 {
		q.waiting = append(q.waiting, question{
			since: int64(since) * int64(100*time.Millisecond), answered: func(_ []script.Answer, err error) { errs = append(errs, err) },
			items: []script.Item{{Limit: q.limit}},
		})
	}
	now = int64(time.Second)
	assert.Len(t, q.next(), 7, "those that have waited for 700 ms at most")
	assert.Equal(t, []error{errBusy, errBusy, errBusy}, errs)
}

// However many questions come at once, none is refused for that: each waits for its turn, and for as long as its caller
// does. Those that are given up take no room.
func TestAQueueIsNeverFull(t *testing.T) {
	const callers = 10 * defaults.Waiting
	var breaker breaker.Breaker
	q := queue{redis: stuck{}, senders: defaults.MostCalls, breaker: &breaker, limit: anyLimit(t), now: func() int64 { return 0 }}
	var givenUp, waits atomic.Bool
	givenUp.Store(true)
	for range callers {
		require.NoError(t, q.put(question{givenUp: &waits}))
	}
	assert.Len(t, q.waiting, callers)
	for range 10 * callers {
		require.NoError(t, q.put(question{givenUp: &givenUp}))
	}
	assert.LessOrEqual(t, len(q.waiting), 3*callers)
}

// A question of a lease that is too late is decided as any that the store did not answer, and is no refusal: the limit
// has plenty.
func TestALeasedRequestThatIsTooLateIsNotRefused(t *testing.T) {
	l := newTimed(t, engine.TokenBucket(engine.PerSecond(1_000_000), 1_000_000), InMode(Leased), Overdraft(0))
	q := l.queueOf("k")
	q.senders = defaults.MostCalls // as many as may be, and all of them wait for an answer
	decided := make(chan engine.Decision)
	go func() { d, _ := l.Take(context.Background(), "k", 1); decided <- d }()
	require.Eventually(t, func() bool { q.mu.Lock(); defer q.mu.Unlock(); return len(q.waiting) == 1 }, 10*time.Second, time.Millisecond)
	l.after(20 * time.Second)
	assert.Empty(t, q.next())
	d := <-decided
	assert.True(t, d.Allowed)
	assert.EqualValues(t, 1, l.Stats().Fallbacks)
}
