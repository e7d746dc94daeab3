package rpclimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

// TestWaitInOrder: calls of one client wait for the tokens of a bucket, one after the other.
func TestWaitInOrder(t *testing.T) {
	c := testclock.New()
	begin := c.Now()
	l := one(t, rpclimit.Limit{Limiter: c.Burst(t, 1), MaxWait: 2 * time.Second}, rpclimit.Pause(c.Pause))
	assert.Equal(t, []rpclimit.Code{ok, ok, ok}, codes(l, 3, from("192.0.2.1")))
	assert.Equal(t, 2*time.Second, c.Now().Sub(begin))
}

func TestAWaitThatIsTooLongIsRefusedAtOnce(t *testing.T) {
	c := testclock.New()
	limiter := c.Burst(t, 1)
	never := rpclimit.Pause(func(context.Context, time.Duration) error { t.Error("it waits"); return nil })
	l := one(t, rpclimit.Limit{Limiter: limiter, MaxWait: time.Second - 1}, never)
	codes(l, 1, from("192.0.2.1"))
	res := l.Decide(from("192.0.2.1"))
	assert.Equal(t, refused, res.Code())
	assert.Equal(t, time.Second, res.RetryAfter())

	soon := from("192.0.2.1")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	soon.Context = ctx
	assert.Equal(t, []rpclimit.Code{refused}, codes(one(t, rpclimit.Limit{Limiter: limiter, MaxWait: engine.Never}, never), 1, soon),
		"its deadline would come first")
}

// TestWaitOfAWindow: only a token bucket lets a call take tokens in advance. With another algorithm, the call waits,
// and the limits are then checked again.
func TestWaitOfAWindow(t *testing.T) {
	for _, policy := range []engine.Policy{engine.FixedWindow(1, time.Second), engine.SlidingWindow(1, time.Second), engine.SlidingLog(1, time.Second),
		engine.BatchRefill(1, time.Second, 1)} {
		c := testclock.New()
		begin := c.Now()
		l := one(t, rpclimit.Limit{Limiter: c.Limiter(t, policy), MaxWait: 10 * time.Second}, rpclimit.Pause(c.Pause), rpclimit.MaxWaiting(1))
		assert.Equal(t, []rpclimit.Code{ok, ok, ok}, codes(l, 3, from("192.0.2.1")), policy)
		assert.GreaterOrEqual(t, c.Now().Sub(begin), 2*time.Second, policy)
	}
}

// TestAskingAgainEnds: if other calls take the tokens first, the call waits again. All its waits together are not
// longer than MaxWait.
func TestAskingAgainEnds(t *testing.T) {
	c := testclock.New()
	begin := c.Now()
	limiter := c.Limiter(t, engine.FixedWindow(1, time.Second))
	key := limiter.KeyUint64(0)
	l := one(t, rpclimit.Limit{Limiter: limiter, Key: rpclimit.Everyone, MaxWait: 3 * time.Second},
		rpclimit.Pause(func(ctx context.Context, d time.Duration) error {
			err := c.Pause(ctx, d)
			limiter.TakeKey(key, 1)
			return err
		}))
	limiter.TakeKey(key, 1)
	assert.Equal(t, []rpclimit.Code{refused}, codes(l, 1, from("")))
	assert.Equal(t, 3*time.Second, c.Now().Sub(begin))
}

// TestAllOrNothingWithWaits: limit A gives a call tokens in advance. If limit B refuses the call, the tokens are given
// back.
func TestAllOrNothingWithWaits(t *testing.T) {
	c := testclock.New()
	patient, strict := c.Burst(t, 1), c.Burst(t, 1)
	l := newLimits(t, []rpclimit.Limit{{Name: "patient", Limiter: patient, MaxWait: time.Minute}, {Name: "strict", Limiter: strict}},
		rpclimit.Pause(c.Pause))
	codes(l, 1, from("192.0.2.1"))
	res := l.Decide(from("192.0.2.1"))
	assert.Equal(t, refused, res.Code())
	assert.Equal(t, limits.NotTaken, res.Check(0).Outcome, "it would have waited")
	c.Advance(time.Second)
	assert.Equal(t, []rpclimit.Code{ok}, codes(l, 1, from("192.0.2.1")), "the reservation is undone")
}

func TestACallThatEndsWhileItWaitsGivesBack(t *testing.T) {
	for code, err := range map[rpclimit.Code]error{rpclimit.Canceled: context.Canceled, rpclimit.DeadlineExceeded: context.DeadlineExceeded} {
		c := testclock.New()
		other := c.Burst(t, 5)
		l := newLimits(t, []rpclimit.Limit{{Name: "other", Limiter: other}, {Name: "waits", Limiter: c.Burst(t, 1), MaxWait: time.Minute}},
			rpclimit.Pause(func(context.Context, time.Duration) error { return err }), rpclimit.MaxWaiting(1))
		assert.Equal(t, []rpclimit.Code{ok, code, code}, codes(l, 3, from("192.0.2.1")))
		res := l.Decide(from("192.0.2.1"))
		assert.Equal(t, "the call ended while it waited for the rate limit", res.Reason())
		assert.Equal(t, limits.NotTaken, res.Check(0).Outcome)
		assert.Equal(t, limits.Refused, res.Check(1).Outcome)
		assert.Equal(t, uint64(4), other.Peek(other.KeyAddr(from("192.0.2.1").Peer), 1).Remaining)
	}
}

// TestRefundOfAWait: tokens for which a call has waited can be given back.
func TestRefundOfAWait(t *testing.T) {
	c := testclock.New()
	l := one(t, rpclimit.Limit{Limiter: c.Burst(t, 1), MaxWait: time.Minute, Refund: rpclimit.RefundCodes(ok)}, rpclimit.Pause(c.Pause))
	codes(l, 1, from("192.0.2.1"))
	res := l.Decide(from("192.0.2.1"))
	require.True(t, res.Allowed())
	begin := c.Now()
	res.Finish(ok)
	assert.Equal(t, []rpclimit.Code{ok}, codes(l, 1, from("192.0.2.1")))
	assert.Equal(t, begin, c.Now(), "no wait")
}

// TestMaxWaiting: a call that would wait in addition to MaxWaiting others is refused at once. When a wait ends, for any
// reason, its place is free.
func TestMaxWaiting(t *testing.T) {
	c := testclock.New()
	limiter := c.Burst(t, 1)
	var l *rpclimit.Limits
	inside := func(context.Context, time.Duration) error {
		res := l.Decide(from("192.0.2.1"))
		assert.Equal(t, refused, res.Code(), "the only place is taken")
		assert.EqualValues(t, 1, l.Waiting())
		return errors.New("over")
	}
	l = one(t, rpclimit.Limit{Limiter: limiter, MaxWait: time.Minute}, rpclimit.MaxWaiting(1), rpclimit.Pause(inside))
	assert.Equal(t, []rpclimit.Code{ok, rpclimit.Canceled, rpclimit.Canceled}, codes(l, 3, from("192.0.2.1")))
	assert.Zero(t, l.Waiting())
	assert.Zero(t, (*rpclimit.Limits)(nil).Waiting())
}

// TestWaitInRealTime: without Pause, a call waits for a timer, or until its context ends.
func TestWaitInRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(10), engine.ClockFunc(time.Now))
		require.NoError(t, err)
		defer limiter.Close()
		l := one(t, rpclimit.Limit{Limiter: limiter, MaxWait: engine.Never})
		begin := time.Now()
		assert.Equal(t, []rpclimit.Code{ok, ok, ok}, codes(l, 3, from("")))
		assert.Equal(t, 2*time.Second, time.Since(begin))
		ctx, cancel := context.WithCancel(t.Context())
		gone := from("")
		gone.Context = ctx
		go func() {
			time.Sleep(100 * time.Millisecond)
			cancel()
		}()
		assert.Equal(t, []rpclimit.Code{rpclimit.Canceled}, codes(l, 1, gone))
		assert.Equal(t, 2100*time.Millisecond, time.Since(begin))
	})
}

// TestTokensThatCameMeanwhileGoBack: limit A refuses, but its tokens come before the call can reserve them. If limit B
// then refuses, the call must give these tokens back.
func TestTokensThatCameMeanwhileGoBack(t *testing.T) {
	c := testclock.New()
	patient, strict := c.Burst(t, 1), testclock.New().Burst(t, 1)
	key := strict.KeyUint64(0)
	strict.TakeKey(key, 1)
	patient.TakeKey(key, 1)
	l := newLimits(t, []rpclimit.Limit{{Name: "patient", Limiter: patient, Key: rpclimit.Everyone, MaxWait: time.Minute},
		{Name: "strict", Limiter: strict, Key: rpclimit.Everyone}})
	c.Advance(400 * time.Millisecond)
	c.Hurry(300 * time.Millisecond) // the limit refuses at 0.7 s, and the token comes at 1 s
	assert.Equal(t, []rpclimit.Code{refused}, codes(l, 1, from("")))
	c.Hurry(0)
	c.Advance(300 * time.Millisecond)
	assert.True(t, patient.Peek(key, 1).Allowed)
}

// TestTheLongestWait: each limit makes a call wait. The call waits as long as the longest of these waits, not as long
// as their sum.
func TestTheLongestWait(t *testing.T) {
	c := testclock.New()
	begin := c.Now()
	slow := c.Limiter(t, engine.TokenBucket(engine.Per(1, time.Minute), 1))
	l := newLimits(t, []rpclimit.Limit{{Name: "slow", Limiter: slow, MaxWait: time.Hour}, {Name: "fast", Limiter: c.Burst(t, 1), MaxWait: time.Hour}},
		rpclimit.Pause(c.Pause))
	assert.Equal(t, []rpclimit.Code{ok, ok}, codes(l, 2, from("")))
	assert.Equal(t, time.Minute, c.Now().Sub(begin))
}

// TestWaitsOfBothKinds: a call must wait for a bucket and for a window. It waits as long as the longer of the two
// waits, not as long as their sum.
func TestWaitsOfBothKinds(t *testing.T) {
	c := testclock.New()
	begin := c.Now()
	l := newLimits(t, []rpclimit.Limit{{Name: "bucket", Limiter: c.Burst(t, 1), MaxWait: time.Minute},
		{Name: "window", Limiter: c.Limiter(t, engine.FixedWindow(1, 5*time.Second)), MaxWait: time.Minute}}, rpclimit.Pause(c.Pause))
	assert.Equal(t, []rpclimit.Code{ok, ok}, codes(l, 2, from("")))
	assert.Equal(t, 5*time.Second, c.Now().Sub(begin))
}

func TestWhatCanNeverPassDoesNotWait(t *testing.T) {
	for _, policy := range []engine.Policy{engine.FixedWindow(1, time.Second), engine.TokenBucket(engine.PerSecond(1), 1)} {
		l := one(t, rpclimit.Limit{Limiter: testclock.New().Limiter(t, policy), MaxWait: engine.Never, Cost: func(rpclimit.Call) uint64 { return 2 }},
			rpclimit.Pause(func(context.Context, time.Duration) error { t.Error("it waits"); return errors.New("over") }))
		assert.Equal(t, []rpclimit.Code{refused}, codes(l, 1, from("")), policy)
	}
}

// TestAShadowTakesNoPlaceAmongThoseThatWait: a limit in shadow mode with a MaxWait takes no waiting place.
func TestAShadowTakesNoPlaceAmongThoseThatWait(t *testing.T) {
	c := testclock.New()
	set := []rpclimit.Limit{{Name: "tried", Limiter: c.Burst(t, 1), Shadow: true, MaxWait: time.Hour},
		{Name: "real", Limiter: c.Burst(t, 2), MaxWait: time.Minute}}
	assert.Equal(t, []rpclimit.Code{ok, ok, ok, ok}, codes(newLimits(t, set, rpclimit.MaxWaiting(1), rpclimit.Pause(c.Pause)), 4, from("")))
}

// TestATokenThatWasWaitedForGoesBackByItsReceipt (I1): a call has waited for a token. When the call ends, the token may
// already have come back with time, and another call may have taken it. If the token were given back again, one call
// too many would be admitted.
func TestATokenThatWasWaitedForGoesBackByItsReceipt(t *testing.T) {
	for name, test := range map[string]struct {
		lasts  time.Duration
		others uint64 // tokens that other calls take before it ends
		shadow bool
		left   uint64 // tokens left when it has ended
	}{
		"at once":                       {0, 0, false, 1},
		"back by itself, and had again": {10 * time.Second, 3, false, 0},
		"back by itself":                {10 * time.Second, 0, false, 3},
		"taken ahead in shadow mode":    {time.Second, 0, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := testclock.New()
			l := c.Burst(t, 3)
			key := l.KeyUint64(0)
			require.True(t, l.TakeKey(key, 3).Allowed)
			set := one(t, rpclimit.Limit{Limiter: l, Key: rpclimit.Everyone, MaxWait: time.Minute, Shadow: test.shadow,
				Refund: rpclimit.RefundCodes(rpclimit.Internal)}, rpclimit.Pause(c.Pause))
			res := set.Decide(from(""))
			require.True(t, res.Allowed())
			c.Advance(test.lasts)
			require.True(t, l.TakeKey(key, test.others).Allowed)
			res.Finish(rpclimit.Internal)
			assert.Equal(t, test.left, l.Peek(key, 0).Remaining)
		})
	}
}
