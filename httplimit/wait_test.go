package httplimit_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// inBubble runs a test in simulated time. It gives the test a function, bucket, that makes a limiter of one token per
// second.
func inBubble(t *testing.T, f func(t *testing.T, bucket func(burst uint64) *engine.Limiter)) {
	synctest.Test(t, func(t *testing.T) {
		f(t, func(burst uint64) *engine.Limiter {
			l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), burst), engine.MaxKeys(100),
				engine.ClockFunc(time.Now))
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
			return l
		})
	})
}

// Requests wait in the order in which they arrive. Requests whose tokens come too late are refused at once.
func TestRequestsWaitForTheirTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
		m := one(t, httplimit.Limit{Limiter: bucket(1), MaxWait: 2 * time.Second})
		h := m.Handler(hello)
		start := time.Now()
		type answer struct {
			status int
			after  time.Duration
			retry  string
		}
		answers := make([]answer, 5)
		for i := range answers {
			go func() {
				w := serve(h, getFrom("192.0.2.1:1"))
				answers[i] = answer{w.Code, time.Since(start), w.Header().Get("Retry-After")}
			}()
			synctest.Wait()
		}
		assert.EqualValues(t, 2, m.Waiting())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Zero(t, m.Waiting())
		assert.Equal(t, []answer{{200, 0, ""}, {200, time.Second, ""}, {200, 2 * time.Second, ""}, {429, 0, "3"},
			{429, 0, "3"}}, answers)
	})
}

// A client that disconnects leaves the line. If it was last in the line, its place is free for the next client.
func TestAWaitEndsWithTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
		m := one(t, httplimit.Limit{Limiter: bucket(1), MaxWait: time.Minute})
		res := m.Decide(getFrom("192.0.2.1:1"))
		require.True(t, res.Allowed())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		start := time.Now()
		res = m.Decide(getFrom("192.0.2.1:1").WithContext(ctx))
		assert.False(t, res.Allowed())
		assert.Equal(t, 300*time.Millisecond, time.Since(start))
		res = m.Decide(getFrom("192.0.2.1:1"))
		assert.True(t, res.Allowed())
		assert.Equal(t, time.Second, time.Since(start), "it stands where the other stood")

		start = time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		res = m.Decide(getFrom("192.0.2.1:1").WithContext(ctx))
		assert.False(t, res.Allowed())
		assert.Zero(t, time.Since(start), "its tokens come after its deadline")
	})
}

// If a client goes away, clients that came after it wait less. If all clients go away, the line is empty.
func TestALineMovesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
		m := newMiddleware(t, []httplimit.Limit{
			{Name: "a", Limiter: bucket(1), MaxWait: time.Minute}, {Name: "b", Limiter: bucket(9), MaxWait: time.Minute},
		})
		start := time.Now()
		came := make([]time.Duration, 10)
		var leave [10]context.CancelFunc
		for i := range came {
			var ctx context.Context
			ctx, leave[i] = context.WithCancel(t.Context())
			go func() {
				if res := m.Decide(getFrom("192.0.2.1:1").WithContext(ctx)); res.Allowed() {
					came[i] = time.Since(start)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond)
		for _, i := range []int{2, 3, 4, 6, 9} {
			leave[i]()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, time.Second, 0, 0, 0, 2 * time.Second, 0, 3 * time.Second, 4 * time.Second, 0}, came)

		// All clients go away, in the order in which they arrived.
		m = one(t, httplimit.Limit{Limiter: bucket(1), MaxWait: time.Minute})
		m.Decide(getFrom("192.0.2.1:1"))
		for i := range leave {
			var ctx context.Context
			ctx, leave[i] = context.WithCancel(t.Context())
			go m.Decide(getFrom("192.0.2.1:1").WithContext(ctx))
			synctest.Wait()
		}
		for i := range leave {
			leave[i]()
		}
		synctest.Wait()
		start = time.Now()
		res := m.Decide(getFrom("192.0.2.1:1"))
		assert.True(t, res.Allowed())
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// A client that waits for several tokens goes away. Clients that came after it then wait for that many tokens less,
// whatever their own costs are.
func TestALineOfSeveralCosts(t *testing.T) {
	inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
		m := one(t, httplimit.Limit{Limiter: bucket(3), MaxWait: time.Minute, Cost: func(r *http.Request) uint64 {
			return uint64(len(r.Method))
		}})
		wait := func(ctx context.Context, method string) time.Duration {
			r := getFrom("192.0.2.1:1").WithContext(ctx)
			r.Method = method
			start := time.Now()
			res := m.Decide(r)
			assert.Equal(t, ctx.Err() == nil, res.Allowed())
			return time.Since(start)
		}
		assert.Zero(t, wait(t.Context(), "GET"))
		ctx, leave := context.WithCancel(t.Context())
		go wait(ctx, "GET")
		synctest.Wait()
		go func() { assert.Equal(t, 2*time.Second, wait(t.Context(), "OK")) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		assert.Equal(t, 3*time.Second, wait(t.Context(), "A"))
	})
}

// A request continues when it has the tokens of all limits. If one limit refuses without a wait, the request does not
// wait for the other limits, and takes nothing.
func TestAllLimitsAreWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
		first, second, third := bucket(1), bucket(2), bucket(10)
		m := newMiddleware(t, []httplimit.Limit{
			{Name: "first", Limiter: first, MaxWait: time.Minute},
			{Name: "second", Limiter: second, MaxWait: time.Minute},
			{Name: "third", Limiter: third, Cost: func(r *http.Request) uint64 {
				if r.Method == http.MethodPost {
					return 11
				}
				return 1
			}},
		})
		start := time.Now()
		for _, after := range []time.Duration{0, time.Second, 2 * time.Second} {
			res := m.Decide(getFrom("192.0.2.1:1"))
			assert.True(t, res.Allowed())
			assert.Equal(t, after, time.Since(start))
		}
		post := getFrom("192.0.2.1:1")
		post.Method = http.MethodPost
		res := m.Decide(post)
		assert.False(t, res.Allowed())
		assert.Equal(t, 2*time.Second, time.Since(start), "it does not wait for the others")
		res = m.Decide(getFrom("192.0.2.1:1"))
		assert.True(t, res.Allowed())
		assert.Equal(t, 3*time.Second, time.Since(start), "and they have what it would have taken")
	})
}

// At most MaxWaiting requests wait. When a wait ends, for any reason, its place is free again.
func TestFewRequestsWait(t *testing.T) {
	inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
		m := one(t, httplimit.Limit{Limiter: bucket(1), MaxWait: time.Minute}, httplimit.MaxWaiting(2))
		for range 3 {
			var allowed atomic.Int64
			for i := range 10 {
				go func() {
					if res := m.Decide(getFrom(fmt.Sprintf("192.0.2.%d:1", i/2))); res.Allowed() {
						allowed.Add(1)
					}
				}()
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			assert.EqualValues(t, 7, allowed.Load(), "five have a token, two wait")
		}
	})
}

// TestOneKeyCannotTakeAllPlacesOfThoseThatWait: a key gets at most an eighth of the waiting places. However its waits
// end, their places are free again.
func TestOneKeyCannotTakeAllPlacesOfThoseThatWait(t *testing.T) {
	inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
		m := one(t, httplimit.Limit{Limiter: bucket(1), MaxWait: time.Minute}, httplimit.MaxWaiting(16))
		for range 3 {
			var allowed atomic.Int64
			ctx, cancel := context.WithCancel(t.Context())
			for i := range 20 {
				go func() {
					r := getFrom("192.0.2.1:1")
					if i%2 == 0 {
						r = r.WithContext(ctx)
					}
					if res := m.Decide(r); res.Allowed() {
						allowed.Add(1)
					}
				}()
			}
			synctest.Wait()
			assert.EqualValues(t, 2, m.Waiting())
			assert.EqualValues(t, 1, allowed.Load())
			go m.Decide(getFrom("192.0.2.2:1"))
			synctest.Wait()
			assert.EqualValues(t, 2, m.Waiting(), "another key has its own token")
			go m.Decide(getFrom("192.0.2.2:1"))
			synctest.Wait()
			assert.EqualValues(t, 3, m.Waiting(), "and its own places")
			cancel()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			assert.Zero(t, m.Waiting())
		}
	})
}

// A limit in shadow mode does not make a request wait. It takes the tokens in advance, and the request uses no waiting
// place.
func TestShadowDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
		m := one(t, httplimit.Limit{Limiter: bucket(1), MaxWait: 3 * time.Second, Shadow: true},
			httplimit.MaxWaiting(1))
		start := time.Now()
		var outcomes []limits.Outcome
		for range 6 {
			res := m.Decide(getFrom("192.0.2.1:1"))
			require.True(t, res.Allowed())
			outcomes = append(outcomes, res.Check(0).Outcome)
		}
		const a, s = limits.Allowed, limits.ShadowRefused
		assert.Equal(t, []limits.Outcome{a, a, a, a, s, s}, outcomes)
		assert.Zero(t, time.Since(start))
	})
}

// Tokens for which a request has waited are refunded, too.
func TestWhatWasWaitedForIsRefunded(t *testing.T) {
	inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
		m := one(t, httplimit.Limit{Limiter: bucket(1), MaxWait: time.Minute, Refund: httplimit.RefundStatus(404, 404)})
		m.Decide(getFrom("192.0.2.1:1"))
		start := time.Now()
		res := m.Decide(getFrom("192.0.2.1:1"))
		require.True(t, res.Allowed())
		res.Finish(getFrom("192.0.2.1:1"), http.StatusNotFound)
		m.Decide(getFrom("192.0.2.1:1"))
		assert.Equal(t, time.Second, time.Since(start), "the third has the token of the second")
	})
}

func TestWaitsThatCannotBe(t *testing.T) {
	for want, l := range map[string]httplimit.Limit{
		"a MaxWait of -1s": {Name: "a", Limiter: testclock.New().Burst(t, 1), MaxWait: -time.Second},
		"requests cannot wait for tokens of a Source": {Name: "a", Source: source(t, noBackend{}), MaxWait: time.Second},
	} {
		_, err := httplimit.New([]httplimit.Limit{l})
		assert.ErrorContains(t, err, want)
	}
	for want, option := range map[string]httplimit.Option{
		"MaxWaiting(0)": httplimit.MaxWaiting(0), "Pause(nil)": httplimit.Pause(nil),
	} {
		_, err := httplimit.New([]httplimit.Limit{{Name: "a", Limiter: testclock.New().Burst(t, 1)}}, option)
		assert.ErrorContains(t, err, want)
	}
}

type noBackend struct{ limits.Backend }

// TestTokensThatCameMeanwhileGoBack: limit A refuses, but its tokens come before the request can reserve them. If limit
// B then refuses, the request must have taken nothing.
func TestTokensThatCameMeanwhileGoBack(t *testing.T) {
	c := testclock.New()
	patient, strict := c.Burst(t, 1), testclock.New().Burst(t, 1)
	key := strict.KeyUint64(0)
	strict.TakeKey(key, 1)
	patient.TakeKey(key, 1)
	m := newMiddleware(t, []httplimit.Limit{{Name: "patient", Limiter: patient, Key: httplimit.Everyone, MaxWait: time.Minute},
		{Name: "strict", Limiter: strict, Key: httplimit.Everyone}})
	c.Advance(400 * time.Millisecond)
	c.Hurry(300 * time.Millisecond) // the limit refuses at 0.7 s, and the token comes at 1 s
	res := m.Decide(get("/"))
	assert.Equal(t, http.StatusTooManyRequests, res.Status())
	c.Hurry(0)
	c.Advance(300 * time.Millisecond)
	assert.True(t, patient.Peek(key, 1).Allowed)
}

// TestATokenThatWasWaitedForGoesBackByItsReceipt (I1): a request has waited for a token. When the request ends, the
// token may already have come back with time, and another request may have taken it. If the token were given back
// again, one request too many would be admitted.
func TestATokenThatWasWaitedForGoesBackByItsReceipt(t *testing.T) {
	for name, c := range map[string]struct {
		lasts  time.Duration
		others uint64 // tokens that other requests take before the request ends
		left   uint64 // tokens left when the request has ended
	}{
		"at once":                       {0, 0, 1},
		"back by itself, and had again": {10 * time.Second, 3, 0},
		"back by itself":                {10 * time.Second, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
				l := bucket(3)
				key := l.KeyUint64(0)
				require.True(t, l.TakeKey(key, 3).Allowed)
				m := one(t, httplimit.Limit{Limiter: l, Key: httplimit.Everyone, MaxWait: time.Minute,
					Refund: httplimit.RefundStatus(500, 599)})
				res := m.Decide(get("/"))
				require.True(t, res.Allowed())
				time.Sleep(c.lasts)
				require.True(t, l.TakeKey(key, c.others).Allowed)
				res.Finish(get("/"), http.StatusInternalServerError)
				assert.Equal(t, c.left, l.Peek(key, 0).Remaining)
			})
		})
	}
}

// TestAShadowGivesBackByItsReceipt: a limit in shadow mode with MaxWait reserves a token that comes back only after a
// second. The request does not wait. If it fails after that second, the token is still given back.
func TestAShadowGivesBackByItsReceipt(t *testing.T) {
	inBubble(t, func(t *testing.T, bucket func(uint64) *engine.Limiter) {
		l := bucket(3)
		key := l.KeyUint64(0)
		require.True(t, l.TakeKey(key, 3).Allowed)
		m := one(t, httplimit.Limit{Limiter: l, Key: httplimit.Everyone, MaxWait: time.Minute, Shadow: true,
			Refund: httplimit.RefundStatus(500, 599)})
		res := m.Decide(get("/"))
		require.True(t, res.Allowed())
		time.Sleep(time.Second)
		require.Zero(t, l.Peek(key, 0).Remaining)
		res.Finish(get("/"), http.StatusInternalServerError)
		assert.EqualValues(t, 1, l.Peek(key, 0).Remaining)
	})
}
