package audit

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limitertest/check"
)

// simulated is a server in virtual time with a limit of package engine.
type simulated struct {
	limiter *engine.Limiter
	delay   time.Duration // delay of each answer
	random  *rand.Rand
	mu      sync.Mutex
	offset  time.Duration // offset of the server's clock

	// key returns the key that counts an Ask; each key has its own bucket. answer changes the answer to an Ask. Both
	// functions may be nil.
	key     func(Request) string
	answer  func(engine.Decision, *Answer)
	maxWait time.Duration
	only1   bool // the server does not support HTTP/2
	// racy checks the limit first, and takes the token a little later. nil means that both happen in one step.
	racy func(key string) engine.Decision
	slow time.Duration // a refusal takes this much longer on its way back, as a refusal with a large header does
	held time.Duration // one request or answer in twenty is delayed by up to this time, as on a busy machine
}

func newSimulated(t *testing.T, p engine.Policy, delay time.Duration, seed uint64, options ...engine.Option) *simulated {
	s := &simulated{delay: delay, random: rand.New(rand.NewPCG(seed, 35))}
	s.offset = time.Duration(s.random.Int64N(int64(time.Hour)))
	var err error
	s.limiter, err = engine.New(p, append(options, engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return time.Now().Add(s.offset) }))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.limiter.Close()) })
	return s
}

func (s *simulated) jitter() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := time.Duration(s.random.ExpFloat64() * float64(500*time.Microsecond))
	if s.held > 0 && s.random.IntN(20) == 0 {
		d += time.Duration(s.random.Int64N(int64(s.held)))
	}
	return d
}

func (s *simulated) Do(ctx context.Context, ask Request) (a Answer, err error) {
	a.Header, a.Sent, a.Status, a.Length = http.Header{}, time.Now(), http.StatusOK, 10
	time.Sleep(s.delay/2 + time.Millisecond + s.jitter())
	if s.only1 && ask.Proto == http2 {
		return a, errors.New("it does not speak HTTP/2")
	}
	key := "k"
	if s.key != nil {
		key = s.key(ask)
	}
	for range max(ask.Times, 1) {
		var d engine.Decision
		if s.racy != nil {
			d = s.racy(key)
		} else if s.maxWait > 0 {
			_, delay, err := s.limiter.Reserve(s.limiter.Key(key), 1, s.maxWait)
			d.Allowed = err == nil
			time.Sleep(delay)
		} else {
			d = s.limiter.Take(key, 1)
		}
		if s.answer != nil {
			s.answer(d, &a)
		}
		if a.Status = http.StatusOK; !d.Allowed {
			a.Status = http.StatusTooManyRequests
			a.Refused++
		}
	}
	time.Sleep(s.delay/2 + time.Millisecond + s.jitter())
	if a.Refused > 0 {
		time.Sleep(s.slow)
	}
	a.Done = time.Now()
	return a, ctx.Err()
}

// TestLimitsAreIdentified: the audit finds kind, limit and period of servers with different delays, clocks and phases.
func TestLimitsAreIdentified(t *testing.T) {
	bucket := func(rate engine.Rate, burst uint64) engine.Policy { return engine.TokenBucket(rate, burst) }
	for name, c := range map[string]struct {
		policy  engine.Policy
		kind    check.Promise
		limit   check.Limit
		maxWait time.Duration
		queued  uint64
		unsure  bool // too few tokens come back in a minute
		far     bool // this case also runs with a delay; make test-audit runs all cases with a delay
	}{
		"bucket":         {far: true, policy: bucket(engine.PerSecond(10), 20), kind: check.Bucket, limit: check.Limit{Tokens: 10, Per: time.Second, Burst: 20}},
		"slow bucket":    {unsure: true, policy: bucket(engine.Per(40, time.Minute), 5), kind: check.Bucket, limit: check.Limit{Tokens: 40, Per: time.Minute, Burst: 5}},
		"fast bucket":    {policy: bucket(engine.PerSecond(100), 50), kind: check.Bucket, limit: check.Limit{Tokens: 100, Per: time.Second, Burst: 50}},
		"fixed window":   {policy: engine.FixedWindow(20, 2*time.Second), kind: check.FixedWindow, limit: check.Limit{Tokens: 20, Per: 2 * time.Second}},
		"longer window":  {unsure: true, policy: engine.FixedWindow(30, 10*time.Second), kind: check.FixedWindow, limit: check.Limit{Tokens: 30, Per: 10 * time.Second}},
		"aligned window": {policy: engine.FixedWindow(20, 2*time.Second).Aligned(), kind: check.AlignedWindow, limit: check.Limit{Tokens: 20, Per: 2 * time.Second}},
		"sliding window": {far: true, policy: engine.SlidingWindow(20, 2*time.Second), kind: check.SlidingEstimate, limit: check.Limit{Tokens: 20, Per: 2 * time.Second}},
		"sliding log":    {policy: engine.SlidingLog(20, 2*time.Second), kind: check.SlidingExact, limit: check.Limit{Tokens: 20, Per: 2 * time.Second}},
		"batch refill":   {policy: engine.BatchRefill(5, time.Second, 20), kind: check.BatchRefill, limit: check.Limit{Tokens: 5, Per: time.Second, Burst: 20}},
		"queue": {policy: bucket(engine.PerSecond(10), 1), maxWait: 2 * time.Second, queued: 20,
			kind: check.Bucket, limit: check.Limit{Tokens: 10, Per: time.Second, Burst: 21}},
	} {
		if testing.Short() && !c.far {
			continue // the search for a limit uses one goroutine, and is slow under the race detector
		}
		delays := []time.Duration{0}
		if c.far && !testing.Short() {
			delays = append(delays, 60*time.Millisecond)
		}
		for _, delay := range delays {
			t.Run(name+" "+delay.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSimulated(t, c.policy, delay, 1)
					s.maxWait = c.maxWait
					a := newAuditor(s, Request{Method: "GET", Target: "/"}, Options{Requests: 1500, Time: time.Minute})
					a.patterns(t.Context(), 300)
					require.NoError(t, a.err)
					r, err := fit.Log(a.requests(), 0)
					require.NoError(t, err)
					t.Logf("%d requests in %v: %+v", a.sent, time.Since(a.begin), r)
					assert.Equal(t, c.kind, r.Limit.Kind)
					assert.Equal(t, c.limit.Tokens, r.Limit.Tokens)
					assert.Equal(t, c.limit.Per, r.Limit.Per)
					assert.Equal(t, c.queued, r.Limit.Queued)
					if c.limit.Burst > 0 {
						assert.Equal(t, c.limit.Burst, r.Limit.Burst)
					}
					assert.GreaterOrEqual(t, r.Confidence(), map[bool]float64{false: 0.5}[c.unsure])
				})
			})
		}
	}
}

// A stickTable counts the requests of one client as HAProxy's http_req_rate does. Refused requests count, too. The
// first request begins a window, and so does the first request after a pause.
type stickTable struct {
	mu             sync.Mutex
	per            time.Duration
	begin          time.Time
	current, prior int64
}

// take counts a request. It refuses the request if the period then has more than most requests.
func (s *stickTable) take(most int64) engine.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.begin.IsZero() || now.Sub(s.begin) >= 2*s.per {
		s.begin, s.current, s.prior = now, 0, 0
	} else if now.Sub(s.begin) >= s.per {
		s.begin, s.current, s.prior = s.begin.Add(s.per), 0, s.current
	}
	s.current++
	left := s.begin.Add(s.per).Sub(now)
	return engine.Decision{Allowed: s.current+s.prior*int64(left)/int64(s.per) <= most}
}

// TestChargedRefusalsAreCertain: the audit reports with certainty that a server charges refused requests.
func TestChargedRefusalsAreCertain(t *testing.T) {
	if testing.Short() {
		t.Skip("the search for a limit is slow under the race detector")
	}
	for _, delay := range []time.Duration{0, 60 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulated(t, engine.SlidingWindow(15, 3*time.Second), delay, 1)
				table := stickTable{per: 3 * time.Second}
				s.racy = func(string) engine.Decision { return table.take(15) }
				a := newAuditor(s, plain, Options{Requests: 1500, Time: time.Minute})
				a.patterns(t.Context(), 375)
				require.NoError(t, a.err)
				r, err := fit.Log(a.requests(), 0)
				require.NoError(t, err)
				t.Logf("%d requests in %v: %+v", a.sent, time.Since(a.begin), r)
				assert.Equal(t, check.SlidingEstimate, r.Limit.Kind)
				assert.Equal(t, uint64(15), r.Limit.Tokens)
				assert.Equal(t, 3*time.Second, r.Limit.Per)
				assert.True(t, r.Limit.Refusals)
				assert.Empty(t, undecided(r))
			})
		})
	}
}
