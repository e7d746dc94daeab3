package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/redislimit/internal/script"
)

func terms() *Terms {
	return &Terms{Limit: 400, PerSecond: 1000, Nodes: 4, Overdraft: 8, Ahead: 10 * time.Millisecond, Life: 100 * time.Millisecond}
}

func at(nanos time.Duration) func() int64 { return func() int64 { return int64(nanos) } }

func TestFirstRequestsAreOnOverdraftAndCharged(t *testing.T) {
	l := New(terms(), 3)
	v, renew := l.Take(1, at(0))
	require.Equal(t, Admitted, v)
	require.True(t, renew)
	assert.Equal(t, script.Ask{Debt: 4}, l.Renewal(0, 1, false), "there was no renewal before by which to tell what it is worth")
	for range 4 {
		v, renew = l.Take(1, at(0))
		require.Equal(t, Admitted, v)
		require.False(t, renew, "one renewal at a time (L4)")
	}
	v, _ = l.Take(1, at(0))
	require.Equal(t, Unknown, v, "debt is at most the overdraft (L2)")
	l.Apply(script.Answer{Granted: 98, Remaining: 298}, 0)
	tokens, debt := l.Balance()
	assert.EqualValues(t, []uint64{98, 4}, []uint64{tokens, debt}, "what came after the question is debt still")
}

func TestALostAnswerKeepsTheDebt(t *testing.T) {
	l := New(terms(), 0)
	l.Take(5, at(0))
	require.EqualValues(t, 5, l.Renewal(0, 1, false).Debt)
	l.Fail(0)
	_, debt := l.Balance()
	assert.EqualValues(t, 5, debt, "L2")
	v, _ := l.Take(1, at(5*time.Millisecond))
	assert.Equal(t, Refused, v, "the store is left alone for a while")
	_, renew := l.Take(1, at(10*time.Millisecond))
	require.True(t, renew)
	assert.EqualValues(t, 6, l.Renewal(int64(10*time.Millisecond), 1, false).Debt)
}

func TestARefusalIsTrusted(t *testing.T) {
	l := New(terms(), 0)
	l.Take(1, at(0))
	l.Renewal(0, 1, false)
	l.Apply(script.Answer{}, 0)
	v, renew := l.Take(1, at(0))
	require.Equal(t, Unknown, v, "not healthy: no overdraft, but the request goes with the renewal")
	require.True(t, renew)
	l.Renewal(0, 1, true)
	v, _ = l.Take(1, at(0))
	assert.Equal(t, Refused, v, "what the renewal brings may be for others")
	v, _ = l.Take(2, at(0))
	assert.Equal(t, Unknown, v, "more than a renewal brings: the store decides")
	require.False(t, l.Apply(script.Answer{RetryAfter: 8 * time.Millisecond}, 0))
	v, renew = l.Take(1, at(8*time.Millisecond-1))
	assert.Equal(t, Refused, v)
	assert.False(t, renew)
	v, renew = l.Take(1, at(8*time.Millisecond))
	assert.Equal(t, Unknown, v)
	assert.True(t, renew)
}

// paced returns a lease with 40 tokens in hand, whose key has spent 2,000 tokens per second.
func paced(t *testing.T) *Lease {
	l, now := New(terms(), 0), time.Duration(0)
	for range 3 {
		now += 10 * time.Millisecond
		v, renew := l.Take(20, at(now))
		require.Equal(t, Unknown, v)
		require.True(t, renew)
		a := l.Renewal(int64(now), 20, true)
		require.True(t, l.Apply(script.Answer{Granted: a.Want, Remaining: 300}, int64(now)))
	}
	tokens, _ := l.Balance()
	require.EqualValues(t, 40, tokens, "for 2τ")
	return l
}

func TestTheStoreIsLeftAloneWhileTokensAreInHand(t *testing.T) {
	l := paced(t)
	v, renew := l.Take(21, at(30*time.Millisecond))
	require.Equal(t, Admitted, v)
	require.True(t, renew)
	l.Renewal(int64(30*time.Millisecond), 21, false)
	require.True(t, l.Refund(21))
	l.Fail(int64(30 * time.Millisecond))
	v, renew = l.Take(21, at(40*time.Millisecond-1))
	require.Equal(t, Admitted, v)
	assert.False(t, renew, "a call failed just now")
	require.True(t, l.Refund(21))
	v, renew = l.Take(21, at(40*time.Millisecond))
	require.Equal(t, Admitted, v)
	assert.True(t, renew)
}

func TestTokensAreGivenBackOnce(t *testing.T) {
	l := New(terms(), 0)
	l.Take(1, at(0))
	l.Renewal(0, 1, false)
	// The lifetime of tokens starts when the question is sent, not when its answer comes.
	l.Apply(script.Answer{Granted: 10, Remaining: 389, Window: 7}, int64(5*time.Millisecond))
	settle, gone := l.Expire(int64(100*time.Millisecond) - 1)
	require.False(t, settle || gone)
	settle, _ = l.Expire(int64(100 * time.Millisecond))
	require.True(t, settle)
	assert.Equal(t, script.Ask{Returned: 10, Window: 7}, l.Settlement(0))
	l.Fail(0)
	tokens, _ := l.Balance()
	assert.Zero(t, tokens, "L3")
	l.Expire(int64(time.Second))
	_, gone = l.Expire(int64(time.Second))
	require.True(t, gone)
	v, _ := l.Take(1, at(time.Second))
	assert.Equal(t, Retired, v)
}

func TestADebtThatIsLeftOverIsCharged(t *testing.T) {
	l := New(terms(), 3)
	settle, gone := l.Expire(0)
	require.False(t, settle || gone, "a request may be about to have it charged")
	settle, gone = l.Expire(0)
	require.True(t, settle)
	require.False(t, gone)
	require.Equal(t, script.Ask{Debt: 3}, l.Settlement(0))
	l.Apply(script.Answer{Remaining: 397}, 0)
	_, debt := l.Balance()
	assert.Zero(t, debt, "L2")
}

func TestWhatIsAskedForFollowsTheRate(t *testing.T) {
	l := New(terms(), 0)
	now, spent := time.Duration(0), uint64(0)
	for range 2000 { // 1,000 per second
		now += time.Millisecond
		v, renew := l.Take(1, at(now))
		require.NotEqual(t, Refused, v)
		spent++
		if renew {
			a := l.Renewal(int64(now), 1, false)
			l.Apply(script.Answer{Granted: a.Want, Remaining: 300}, int64(now))
		}
	}
	assert.InDelta(t, 20, l.question.Want, 6, "twice what is spent in τ")
	assert.InDelta(t, 10, l.question.Need, 4)
}

func TestLocalDecisionsDoNotAllocate(t *testing.T) {
	l := New(terms(), 0)
	l.Take(1, at(0))
	l.Renewal(0, 1, false)
	l.Apply(script.Answer{Granted: 1 << 20, Remaining: 300}, 0)
	now := at(0)
	assert.Zero(t, testalloc.PerCall(func() { l.Take(1, now) }))
}

// A request that costs more than the tokens in hand goes with the renewal.
func TestALargeRequestGoesWithTheRenewal(t *testing.T) {
	l := New(terms(), 0)
	v, renew := l.Take(60, at(0))
	require.Equal(t, Unknown, v)
	require.True(t, renew)
	assert.Equal(t, script.Ask{Need: 60, Want: 60}, l.Renewal(0, 60, true), "by itself: a renewal has never been for so much")
	assert.True(t, l.Apply(script.Answer{Granted: 60, Remaining: 340}, 0))
	tokens, debt := l.Balance()
	assert.Zero(t, tokens+debt)

	paced(t) // if such requests come often, one call brings more tokens than one request costs
}

// If the store refuses a large request, the lease still asks it about a small one.
func TestALargeRefusalIsTrustedForLargeRequests(t *testing.T) {
	l := New(terms(), 0)
	l.Take(60, at(0))
	l.Renewal(0, 60, true)
	require.False(t, l.Apply(script.Answer{Remaining: 50, RetryAfter: 10 * time.Millisecond}, 0))
	for n, want := range map[uint64]Verdict{60: Refused, 70: Refused, 59: Unknown, 1: Unknown} {
		v, renew := l.Take(n, at(10*time.Millisecond-1))
		assert.Equal(t, want, v, "%d", n)
		if renew {
			l.Renewal(0, 1, false)
			l.end(0, 0, nil)
		}
	}
	v, _ := l.Take(60, at(10*time.Millisecond))
	assert.Equal(t, Unknown, v, "exactly as long as the store said")
}
