package redislimit

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
)

func anyLimit(t *testing.T) *script.Limit {
	limit, err := script.NewLimit(engine.TokenBucket(engine.PerSecond(1), 1), script.Terms{})
	require.NoError(t, err)
	return limit
}

// testQueue returns a queue with one call in progress that leaves no room for a second.
func testQueue(t *testing.T, now func() int64) *queue {
	q := &queue{
		breaker: new(breaker.Breaker), limit: anyLimit(t), now: now,
		client: &Client{clientConfig: clientConfig{timeout: time.Second}},
	}
	q.pace.Begin()
	q.pace.Send(defaults.MaxFullCalls * script.Full)
	return q
}

// A question for which no caller waits is not sent.
func TestQuestionsThatAreGivenUpAreNotAsked(t *testing.T) {
	var givenUp atomic.Bool
	givenUp.Store(true)
	q := testQueue(t, func() int64 { return 0 })
	for i := range 3 * defaults.PerCall {
		one := question{
			onAnswer: func([]script.Answer, error) { t.Error("asked") }, items: []script.Item{{Limit: q.limit, Key: string(rune('a' + i%2))}},
		}
		if i%2 == 1 {
			one.givenUp = &givenUp
		}
		q.waiting = append(q.waiting, one)
	}
	for _, want := range []int{defaults.PerCall, defaults.PerCall / 2, 0} {
		next, ok := q.next()
		assert.Equal(t, want > 0, ok)
		assert.Len(t, next.questions, want)
		for _, one := range next.questions {
			assert.Equal(t, "a", one.items[0].Key)
		}
	}
	assert.Nil(t, q.waiting)
}

// A question that would be too late is not sent, and its caller gets an error at once.
func TestQuestionsThatAreTooLateAreNotAsked(t *testing.T) {
	now := int64(0)
	q := testQueue(t, func() int64 { return now })
	const begin = int64(time.Hour) // the queue was last empty long before this time
	q.pace.Answered(begin-int64(300*time.Millisecond), begin, 0, time.Second, false)
	var errs []error
	for since := range 10 {
		q.waiting = append(q.waiting, question{
			since: begin + int64(since)*int64(100*time.Millisecond), onAnswer: func(_ []script.Answer, err error) { errs = append(errs, err) },
			items: []script.Item{{Limit: q.limit}},
		})
	}
	now = begin + int64(time.Second)
	next, _ := q.next()
	assert.Len(t, next.questions, 7, "those that have waited for 700 ms at most")
	assert.Equal(t, []error{errBusy, errBusy, errBusy}, errs)
}

// All questions of a burst are sent, however large it is.
func TestABurstIsAsked(t *testing.T) {
	const burst = 10_000
	now := int64(time.Hour)
	q := testQueue(t, func() int64 { return now })
	q.redis = stuck{}
	for range burst {
		q.mu.Lock() // so that no call begins
		if len(q.waiting) == 0 {
			q.pace.Empty(now)
		}
		q.waiting = append(q.waiting, question{since: now, items: []script.Item{{Limit: q.limit}}, onAnswer: func(_ []script.Answer, err error) {
			t.Error(err)
		}})
		q.mu.Unlock()
	}
	asked := 0
	for range burst / defaults.PerCall {
		now += int64(10 * time.Millisecond)
		next, ok := q.next()
		require.True(t, ok)
		asked += len(next.questions)
		q.pace.Answered(next.sent, now, next.size, time.Second, false)
	}
	assert.Equal(t, burst/defaults.PerCall*defaults.PerCall, asked)
}

// A queue has no maximum length, and questions that are given up are removed.
func TestAQueueIsNeverFull(t *testing.T) {
	const callers = 10 * defaults.Waiting
	q := testQueue(t, func() int64 { return 0 })
	q.redis = stuck{}
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

// If a question of a lease is too late, a request that goes with it is not refused.
func TestALeasedRequestThatIsTooLateIsNotRefused(t *testing.T) {
	l := newTimed(t, engine.TokenBucket(engine.PerSecond(1_000_000), 1_000_000), InMode(Leased), Overdraft(0))
	q := l.queueOf("k")
	q.pace.Begin()
	q.pace.Send(defaults.MaxFullCalls * script.Full)
	decided := make(chan engine.Decision)
	go func() { d, _ := l.Take(context.Background(), "k", 1); decided <- d }()
	require.Eventually(t, func() bool { q.mu.Lock(); defer q.mu.Unlock(); return len(q.waiting) == 1 }, 10*time.Second, time.Millisecond)
	l.after(20 * time.Second)
	q.pace.Send(-defaults.MaxFullCalls * script.Full)
	_, ok := q.next()
	assert.False(t, ok)
	d := <-decided
	assert.True(t, d.Allowed)
	assert.EqualValues(t, 1, l.Stats().Fallbacks)
}

// A slowRedis answers after some time, in the virtual time of synctest.
type slowRedis struct {
	rueidis.Client
	after time.Duration
}

func (s slowRedis) Do(context.Context, rueidis.Completed) rueidis.RedisResult {
	time.Sleep(s.after)
	return rueidis.RedisResult{}
}

// A process that gets no processor does not count its own delay as a delay of the store.
func TestAStarvedProcessWaits(t *testing.T) {
	const limit = 80 * time.Millisecond
	server := miniredis.RunT(t)
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	for name, c := range map[string]struct {
		factor int64 // how much faster the clock runs than the timers
		most   time.Duration
	}{"runs": {1, limit}, "starved": {2, 3 * limit}} {
		for _, after := range []time.Duration{c.most - limit/10, c.most + limit/10} {
			t.Run(fmt.Sprint(name, " ", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					begin := time.Now()
					q := testQueue(t, func() int64 { return int64(time.Since(begin)) * c.factor })
					q.redis = slowRedis{redis, after}
					defer time.Sleep(after) // the answer comes too late; wait for it
					_, err := q.ask(call{questions: []question{{items: []script.Item{{Limit: q.limit, Key: "k"}}}}, limit: limit})
					require.ErrorIs(t, err, ErrStore)
					if after < c.most {
						require.NotErrorIs(t, err, errTimeout)
						require.Equal(t, after, time.Since(begin))
						return
					}
					require.ErrorIs(t, err, errTimeout)
					require.Equal(t, c.most, time.Since(begin))
				})
			})
		}
	}
}
