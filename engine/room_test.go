package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testrace"
)

// TestHowManyNewKeysFindNoRoom: in a table with MaxKeys keys, about one new key in 500 finds no room. The test uses the
// stable hash, because secret hashes differ.
func TestHowManyNewKeysFindNoRoom(t *testing.T) {
	testrace.OneGoroutine(t)
	const keys, tries, tables = 40_000, 100_000, 6
	var l *Limiter
	id := uint64(0)
	insert := func() Key {
		for {
			id++
			if k := l.KeyUint64(id); l.AllowKey(k) {
				return k
			}
		}
	}
	refused := func() uint64 { // refused returns how many new keys are refused; the others leave again
		before := l.Stats().NoRoom
		for range tries {
			id++
			if k := l.KeyUint64(id); l.AllowKey(k) {
				l.Reset(k)
			}
		}
		return l.Stats().NoRoom - before
	}
	var fresh, used uint64
	for range tables {
		l, _ = newLimiter(t, TokenBucket(Per(1, time.Hour), 1), MaxKeys(keys), Overflow(Refuse), HashStable(), Shards(8))
		live := make([]Key, keys)
		for i := range live {
			live[i] = insert()
		}
		fresh += refused()
		for range 2 {
			for i := range live {
				l.Reset(live[i])
				live[i] = insert()
			}
		}
		used += refused()
	}
	t.Logf("one in %d, and one in %d", tables*tries/fresh, tables*tries/used)
	assert.InDelta(t, 500, tables*tries/fresh, 200)
	assert.InDelta(t, 1000, tables*tries/used, 250)
}

// withoutRoom returns a limiter with a limit of 5 tokens, and a key for which it has no room.
func withoutRoom(t *testing.T, overflow OverflowPolicy) (*Limiter, Key) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 5), MaxKeys(1), Shards(1), Overflow(overflow))
	for i := range uint64(10_000) {
		k := l.KeyUint64(i)
		if l.TakeKey(k, 1); l.Stats().NoRoom+l.Stats().Unrecorded > 0 {
			return l, k
		}
	}
	t.Fatal("there is room for 10,000 keys")
	return nil, Key{}
}

// TestWhoHasNoRoomIsNamed: TakeAll answers with a RetryAfter if a limiter has no room for a key.
func TestWhoHasNoRoomIsNamed(t *testing.T) {
	l, k := withoutRoom(t, Refuse)
	other, _ := newLimiter(t, TokenBucket(PerSecond(1), 5))
	answers := make([]Answer, 2)
	allowed, err := TakeAll([]Request{{Limiter: other, Key: other.Key("k"), N: 1}, {Limiter: l, Key: k, N: 1}}, answers)
	require.NoError(t, err)
	require.False(t, allowed)
	require.True(t, answers[0].Decision.Allowed)
	require.False(t, answers[1].Decision.Allowed)
	require.Positive(t, answers[1].Decision.RetryAfter)

	allowed, err = TakeAll([]Request{{}}, answers)
	require.Error(t, err)
	require.False(t, allowed)
	allowed, err = TakeAll([]Request{{Limiter: l, Key: k, N: 1}}, nil)
	require.Error(t, err)
	require.False(t, allowed)
}

// TestAHoldWithoutRoomIsOfTheLimit: a hold that is admitted without a record has at most the limit.
func TestAHoldWithoutRoomIsOfTheLimit(t *testing.T) {
	l, k := withoutRoom(t, Admit)
	for most, want := range map[uint64]uint64{3: 3, 5: 5, 100: 5} {
		d, r := l.HoldUpTo(k, 1, most)
		require.True(t, d.Allowed)
		require.Equal(t, want, r.Taken(), "up to %d", most)
		require.EqualValues(t, 7, r.Settle(want+7), "there is no record to charge")
	}
}

// TestAChargeWithoutRoomIsLost: without room, nothing is charged.
func TestAChargeWithoutRoomIsLost(t *testing.T) {
	l, k := withoutRoom(t, Admit)
	d, lost := l.Charge(k, 7)
	require.EqualValues(t, 7, lost)
	require.Equal(t, l.Peek(k, 1), d)
	require.True(t, d.Allowed)
	l, k = withoutRoom(t, Refuse)
	d, lost = l.Charge(k, 7)
	require.EqualValues(t, 7, lost)
	require.False(t, d.Allowed)
}
