package rpclimit_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

func TestARefusalTellsWhen(t *testing.T) {
	c := testclock.New()
	l := one(t, rpclimit.Limit{Limiter: c.Burst(t, 2)})
	assert.Equal(t, []rpclimit.Code{ok, ok}, codes(l, 2, from("192.0.2.1")))
	c.Advance(300 * time.Millisecond)
	res := l.Decide(from("192.0.2.1"))
	assert.False(t, res.Allowed())
	assert.Equal(t, 700*time.Millisecond, res.RetryAfter())
	assert.Equal(t, "rate limit exceeded", res.Reason())
	assert.Equal(t, ok, codes(l, 1, from("192.0.2.2"))[0], "another client has its own bucket")
	c.Advance(res.RetryAfter() - 1)
	assert.Equal(t, refused, codes(l, 1, from("192.0.2.1"))[0])
	c.Advance(1)
	res = l.Decide(from("192.0.2.1"))
	assert.True(t, res.Allowed())
	assert.Zero(t, res.RetryAfter())
	assert.Empty(t, res.Reason())
}

func TestACallThatCostsMoreThanTheLimitNeverPasses(t *testing.T) {
	l := one(t, rpclimit.Limit{Limiter: testclock.New().Burst(t, 2), Cost: func(rpclimit.Call) uint64 { return 3 }, MaxWait: engine.Never},
		rpclimit.RetryJitter(time.Second, nil))
	res := l.Decide(from(""))
	assert.Equal(t, refused, res.Code())
	assert.Equal(t, engine.Never, res.RetryAfter())
	assert.Equal(t, "the call costs more than the rate limit", res.Reason())
}

func TestSeveralLimitsAllOrNothing(t *testing.T) {
	c := testclock.New()
	small, large := c.Burst(t, 1), c.Burst(t, 5)
	seen := &counts{}
	var told []string
	l := newLimits(t, []rpclimit.Limit{{Name: "large", Limiter: large, Key: rpclimit.Everyone}, {Name: "small", Limiter: small}},
		rpclimit.ObserveWith(seen), rpclimit.OnLimited(func(_ rpclimit.Call, check rpclimit.Check) { told = append(told, check.Name()) }))
	assert.Equal(t, []rpclimit.Code{ok, refused, refused}, codes(l, 3, from("192.0.2.1")))
	assert.Equal(t, uint64(4), large.Peek(large.KeyUint64(0), 1).Remaining, "refused calls took nothing")
	assert.Equal(t, 2, seen.of(limits.Allowed))
	assert.Equal(t, 2, seen.of(limits.Refused))
	assert.Equal(t, []string{"small", "small"}, told)

	res := l.Decide(from("192.0.2.1"))
	require.Equal(t, 2, res.Len())
	assert.Equal(t, limits.NotTaken, res.Check(0).Outcome)
	assert.Equal(t, limits.Refused, res.Check(1).Outcome)
	tightest, found := res.Tightest()
	require.True(t, found)
	assert.Equal(t, "small", tightest.Name())
}

// TestOneLimiterTwice: if two limits share a limiter and a key, both take tokens.
func TestOneLimiterTwice(t *testing.T) {
	limiter := testclock.New().Burst(t, 3)
	l := newLimits(t, []rpclimit.Limit{{Name: "a", Limiter: limiter}, {Name: "b", Limiter: limiter}})
	assert.Equal(t, []rpclimit.Code{ok, refused}, codes(l, 2, from("192.0.2.1")))
	assert.Equal(t, uint64(1), limiter.Peek(limiter.KeyAddr(from("192.0.2.1").Peer), 1).Remaining)
}

func TestMatchAndManyLimits(t *testing.T) {
	match, err := rpclimit.MatchMethods("/test.Service/Get")
	require.NoError(t, err)
	var set []rpclimit.Limit
	for i := range 20 {
		set = append(set, rpclimit.Limit{Name: string(rune('a' + i)), Limiter: testclock.New().Burst(t, uint64(30-i)), Match: match})
	}
	l := newLimits(t, set)
	res := l.Decide(from("192.0.2.1"))
	assert.Equal(t, 20, res.Len())
	tightest, _ := res.Tightest()
	assert.Equal(t, "t", tightest.Name())
	assert.Equal(t, uint64(10), tightest.Decision.Remaining)
	other := l.Decide(method("/test.Service/Put"))
	assert.Zero(t, other.Len())
	assert.True(t, other.Allowed())
	_, found := other.Tightest()
	assert.False(t, found)
}

func TestShadow(t *testing.T) {
	c := testclock.New()
	seen := &counts{}
	shadow := c.Burst(t, 1)
	l := newLimits(t, []rpclimit.Limit{{Name: "tried", Limiter: shadow, Shadow: true, MaxWait: time.Second}, {Name: "real", Limiter: c.Burst(t, 4)}},
		rpclimit.ObserveWith(seen), rpclimit.MaxWaiting(1), rpclimit.Pause(func(context.Context, time.Duration) error {
			t.Error("a limit in shadow mode does not wait")
			return nil
		}))
	assert.Equal(t, []rpclimit.Code{ok, ok, ok, ok, refused}, codes(l, 5, from("192.0.2.1")))
	assert.Equal(t, 2, seen.of(limits.ShadowRefused), "the second would have waited for a second; the others would be too late")
	assert.Equal(t, 1, seen.of(limits.Refused))
	assert.Equal(t, 6, seen.of(limits.Allowed))
}

func TestTier(t *testing.T) {
	limiter := testclock.New().Limiter(t, engine.TokenBucket(engine.PerSecond(1), 1), engine.Tiers(engine.TokenBucket(engine.PerSecond(1), 3)))
	l := one(t, rpclimit.Limit{Limiter: limiter, Tier: func(c rpclimit.Call) int {
		if v, _ := c.Value("plan"); v == "paid" {
			return 1
		}
		return 0
	}})
	assert.Equal(t, []rpclimit.Code{ok, refused}, codes(l, 2, from("192.0.2.1")))
	assert.Equal(t, []rpclimit.Code{ok, ok, ok, refused}, codes(l, 4, from("192.0.2.2", "plan", "paid")))
}

func TestQuota(t *testing.T) {
	policy := engine.TokenBucket(engine.PerSecond(1), 2)
	var failure error
	seen := &counts{}
	l := one(t, rpclimit.Limit{Limiter: testclock.New().Limiter(t, engine.TokenBuckets(time.Hour)),
		Quota: func(rpclimit.Call) (engine.Policy, error) { return policy, nil }},
		rpclimit.OnError(func(_ string, err error) { failure = err }), rpclimit.ObserveWith(seen))
	assert.Equal(t, []rpclimit.Code{ok, ok, refused}, codes(l, 3, from("192.0.2.1")))
	policy = engine.Unlimited()
	assert.Equal(t, []rpclimit.Code{ok, ok}, codes(l, 2, from("192.0.2.1")))
	policy = engine.Blocked()
	assert.Equal(t, []rpclimit.Code{refused}, codes(l, 1, from("192.0.2.2")))
	require.NoError(t, failure)
	policy = engine.FixedWindow(1, time.Second)
	res := l.Decide(from("192.0.2.3"))
	assert.Equal(t, rpclimit.Unavailable, res.Code())
	assert.Equal(t, "the rate limit cannot be applied", res.Reason())
	assert.ErrorContains(t, failure, `the Quota of limit "default"`)
	assert.Equal(t, 1, seen.of(limits.Failed))
}

// TestAQuotaThatFailsGivesBackWhatOthersTook: if the quota of one limit fails, the other limits get their tokens back.
// If the quota of a limit in shadow mode fails, nothing is refused.
func TestAQuotaThatFailsGivesBackWhatOthersTook(t *testing.T) {
	bad := func(rpclimit.Call) (engine.Policy, error) { return engine.Policy{}, nil }
	other := testclock.New().Burst(t, 1)
	set := []rpclimit.Limit{{Name: "other", Limiter: other}, {Name: "bad", Limiter: testclock.New().Burst(t, 1), Quota: bad}}
	assert.Equal(t, []rpclimit.Code{rpclimit.Unavailable, rpclimit.Unavailable}, codes(newLimits(t, set), 2, from("192.0.2.1")))
	assert.Equal(t, uint64(1), other.Peek(other.KeyAddr(from("192.0.2.1").Peer), 1).Remaining)
	set[1].Shadow = true
	var told int
	l := newLimits(t, set, rpclimit.OnError(func(string, error) { told++ }))
	assert.Equal(t, []rpclimit.Code{ok, refused}, codes(l, 2, from("192.0.2.1")))
	assert.Equal(t, 2, told)
}

func TestMessages(t *testing.T) {
	limiter := testclock.New().Burst(t, 2)
	l := newLimits(t, []rpclimit.Limit{{Name: "calls", Limiter: testclock.New().Burst(t, 10)}},
		rpclimit.Messages(rpclimit.Limit{Name: "messages", Limiter: limiter}))
	assert.True(t, l.CountMessages())
	stream := from("192.0.2.1")
	stream.Stream = true
	opening := l.Decide(stream)
	assert.Equal(t, 1, opening.Len())
	message := l.DecideMessage(stream)
	require.Equal(t, 1, message.Len())
	assert.Equal(t, "messages", message.Check(0).Name())
	assert.Equal(t, []rpclimit.Code{ok, refused}, codes(l, 2, from("192.0.2.1")), "a unary call has one message")
	assert.False(t, one(t, rpclimit.Limit{Limiter: limiter}).CountMessages())
}

func TestRefund(t *testing.T) {
	seen := &counts{}
	l := one(t, rpclimit.Limit{Limiter: testclock.New().Burst(t, 1), Refund: rpclimit.RefundCodes(rpclimit.OK, rpclimit.Unavailable)},
		rpclimit.ObserveWith(seen))
	for _, code := range []rpclimit.Code{ok, rpclimit.Unavailable, ok} {
		res := l.Decide(from("192.0.2.1"))
		require.True(t, res.Refundable())
		res.Finish(code)
		res.Finish(code)
	}
	assert.Equal(t, 3, seen.of(limits.Refunded))
	ctx, cancel := context.WithCancel(context.Background())
	gone := from("192.0.2.1")
	gone.Context = ctx
	res := l.Decide(gone)
	require.True(t, res.Allowed())
	cancel()
	res.Finish(ok)
	assert.Equal(t, []rpclimit.Code{refused}, codes(l, 1, from("192.0.2.1")), "who goes away gets nothing back")
	res = l.Decide(from("192.0.2.1"))
	assert.False(t, res.Refundable())
	res.Finish(ok)
	assert.Equal(t, 3, seen.of(limits.Refunded))

	plain := one(t, rpclimit.Limit{Limiter: testclock.New().Burst(t, 1)})
	res = plain.Decide(from(""))
	assert.False(t, res.Refundable())
	kept := one(t, rpclimit.Limit{Limiter: testclock.New().Burst(t, 1), Refund: rpclimit.RefundCodes(rpclimit.OK)})
	res = kept.Decide(from(""))
	res.Finish(rpclimit.Internal)
	assert.Equal(t, []rpclimit.Code{refused}, codes(kept, 1, from("")))
}

// TestCountedDecisions: many goroutines make calls. Together, exactly as many calls pass as there are tokens.
func TestCountedDecisions(t *testing.T) {
	limiter := testclock.New().Burst(t, 1000)
	l := newLimits(t, []rpclimit.Limit{{Name: "all", Limiter: limiter, Key: rpclimit.Everyone}, {Name: "peer", Limiter: testclock.New().Burst(t, 400)}})
	var passed, stopped atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 500 {
				if res := l.Decide(from([]string{"192.0.2.1", "192.0.2.2"}[i%2])); res.Allowed() {
					passed.Add(1)
				} else {
					stopped.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, int64(800), passed.Load())
	assert.Equal(t, int64(1200), stopped.Load())
	assert.Equal(t, uint64(200), limiter.Peek(limiter.KeyUint64(0), 1).Remaining)
}

// TestLimitsThatNewDidNotMake: a Limits that was not made by New refuses everything.
func TestLimitsThatNewDidNotMake(t *testing.T) {
	var none *rpclimit.Limits
	for _, l := range []*rpclimit.Limits{none, new(rpclimit.Limits)} {
		for _, res := range []rpclimit.Result{l.Decide(from("")), l.DecideMessage(from(""))} {
			assert.Equal(t, rpclimit.Internal, res.Code())
			assert.Equal(t, "the rate limits were not made by rpclimit.New", res.Reason())
			res.Finish(ok)
		}
		assert.False(t, l.CountMessages())
	}
}

// TestTheZeroCall: a decision on a Call without any field does not panic.
func TestTheZeroCall(t *testing.T) {
	value, err := rpclimit.MetadataValue("x", rpclimit.Join(rpclimit.Method, rpclimit.Target, rpclimit.Peer))
	require.NoError(t, err)
	l := one(t, rpclimit.Limit{Limiter: testclock.New().Burst(t, 1), Key: value, MaxWait: time.Millisecond, Refund: rpclimit.RefundCodes(ok)},
		rpclimit.Skip(func(c rpclimit.Call) bool { return c.Context.Err() != nil }))
	res := l.Decide(rpclimit.Call{})
	assert.True(t, res.Allowed())
	res.Finish(rpclimit.Internal)
	assert.Equal(t, []rpclimit.Code{refused}, codes(l, 1, rpclimit.Call{}))
}

func TestJitter(t *testing.T) {
	l := one(t, rpclimit.Limit{Limiter: testclock.New().Burst(t, 1)}, rpclimit.RetryJitter(4*time.Second, func() float64 { return 0.5 }))
	codes(l, 1, from(""))
	res := l.Decide(from(""))
	assert.Equal(t, 3*time.Second, res.RetryAfter())

	for bad, want := range map[float64]time.Duration{-1: time.Second, 2: 5 * time.Second} {
		l := one(t, rpclimit.Limit{Limiter: testclock.New().Burst(t, 1)}, rpclimit.RetryJitter(4*time.Second, func() float64 { return bad }))
		codes(l, 1, from(""))
		res := l.Decide(from(""))
		assert.Equal(t, want, res.RetryAfter(), "a random number that is none")
	}
}

func TestBadInput(t *testing.T) {
	limiter := testclock.New().Burst(t, 1)
	good := rpclimit.Limit{Name: "a", Limiter: limiter}
	with := func(change func(*rpclimit.Limit)) []rpclimit.Limit {
		l := good
		change(&l)
		return []rpclimit.Limit{l}
	}
	for want, set := range map[string][]rpclimit.Limit{
		"no limits":                      nil,
		"the name goes into answers":     with(func(l *rpclimit.Limit) { l.Name = "" }),
		"printable ASCII":                with(func(l *rpclimit.Limit) { l.Name = "a\n" }),
		"neither a Limiter nor a Source": with(func(l *rpclimit.Limit) { l.Limiter = nil }),
		"a MaxWait of -1ns":              with(func(l *rpclimit.Limit) { l.MaxWait = -1 }),
		"both Tier and Quota": with(func(l *rpclimit.Limit) {
			l.Tier, l.Quota = func(rpclimit.Call) int { return 0 }, func(rpclimit.Call) (engine.Policy, error) { return engine.Blocked(), nil }
		}),
		"limits 1 and 2 of 2 have the same": {good, good},
	} {
		_, err := rpclimit.New(set)
		assert.ErrorContains(t, err, want)
	}
	for want, change := range map[string]func(*rpclimit.Limit){
		"Refund is set, but a message ends without a status":          func(l *rpclimit.Limit) { l.Refund = rpclimit.RefundCodes(ok) },
		"Hold is set, but a message has no handler that could settle": func(l *rpclimit.Limit) { l.Hold = true },
		"the end of a message is not known":                           func(l *rpclimit.Limit) { *l = inFlight(t, 1) },
	} {
		l := good
		change(&l)
		_, err := rpclimit.New(nil, rpclimit.Messages(l))
		assert.ErrorContains(t, err, want)
	}
	for want, option := range map[string]rpclimit.Option{
		"option 1 of 1 is nil": nil, "Skip(nil)": rpclimit.Skip(nil), "OnLimited(nil)": rpclimit.OnLimited(nil),
		"OnError(nil)": rpclimit.OnError(nil), "ObserveWith(nil)": rpclimit.ObserveWith(nil), "Pause(nil)": rpclimit.Pause(nil),
		"MaxWaiting(0)": rpclimit.MaxWaiting(0), "RetryJitter(0s)": rpclimit.RetryJitter(0, nil),
		"RetryJitter(1h0m0.000000001s)": rpclimit.RetryJitter(time.Hour+1, nil),
	} {
		_, err := rpclimit.New([]rpclimit.Limit{good}, option)
		assert.ErrorContains(t, err, want)
	}
}

// TestTheLongestRetryAfter: a refusal has the longest RetryAfter of all limits that refuse, because the call cannot
// pass sooner.
func TestTheLongestRetryAfter(t *testing.T) {
	slow := rpclimit.Limit{Name: "slow", Limiter: testclock.New().Limiter(t, engine.TokenBucket(engine.Per(1, time.Minute), 1))}
	fast := rpclimit.Limit{Name: "fast", Limiter: testclock.New().Burst(t, 1)}
	codes(newLimits(t, []rpclimit.Limit{slow, fast}), 1, from(""))
	for _, set := range [][]rpclimit.Limit{{slow, fast}, {fast, slow}} {
		res := newLimits(t, set).Decide(from(""))
		assert.Equal(t, time.Minute, res.RetryAfter())
		tightest, _ := res.Tightest()
		assert.Equal(t, "slow", tightest.Name())
	}
}

// TestFinishOnce: only the first Finish has an effect. A limit in shadow mode that took nothing gives nothing back.
func TestFinishOnce(t *testing.T) {
	seen := &counts{}
	l := newLimits(t, []rpclimit.Limit{{Name: "real", Limiter: testclock.New().Burst(t, 2), Refund: rpclimit.RefundCodes(ok)},
		{Name: "tried", Limiter: testclock.New().Burst(t, 1), Shadow: true, Refund: rpclimit.RefundCodes(rpclimit.Internal)}}, rpclimit.ObserveWith(seen))
	codes(l, 1, from(""))
	res := l.Decide(from(""))
	require.True(t, res.Refundable())
	res.Finish(rpclimit.Internal)
	res.Finish(ok)
	assert.Zero(t, seen.of(limits.Refunded))
	assert.Equal(t, []rpclimit.Code{refused}, codes(l, 1, from("")))
}

func TestValue(t *testing.T) {
	value, found := from("", "tenant", "a").Value("Tenant")
	assert.True(t, found)
	assert.Equal(t, "a", value)
}
