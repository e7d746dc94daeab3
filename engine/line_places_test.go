package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// place takes the next place in the line of a key.
func place(t *testing.T, l *Limiter, k Key, n uint64) *Turn {
	t.Helper()
	turn, _, err := l.Queue(k, n, time.Hour)
	require.NoError(t, err)
	return turn
}

// TestATurnEndsOnce: the first Come or Leave ends a turn, also a turn whose caller did not have to wait. A turn that
// Leave ends costs nothing, and what is called afterwards changes nothing.
func TestATurnEndsOnce(t *testing.T) {
	for _, drained := range []uint64{0, 4} { // the caller does not wait, and it waits
		lined(t, TokenBucket(PerSecond(1), 4), func(t *testing.T, l *Limiter, k Key) {
			left := func() int64 { return int64(4 - l.Peek(k, 0).Remaining) }
			require.True(t, l.TakeKey(k, drained).Allowed)
			gone := place(t, l, k, 2)
			gone.Leave()
			time.Sleep(2 * time.Second)
			require.EqualValues(t, max(int64(drained)-2, 0), left(), "as if it had not been there")

			turn := place(t, l, k, 2)
			taken := left()
			gone.Leave()
			gone.Come()
			assert.Equal(t, taken, left(), "it has left")
			first, second := turn.Come(), turn.Come()
			turn.Leave()
			second.Release()
			assert.Equal(t, taken, left(), "it has come")
			first.Release()
			assert.Equal(t, taken-2, left())
		})
	}
}

// TestUntilIsFromNowOn: a turn that is asked late, or again, waits until the same moment. A turn whose moment is over
// does not wait.
func TestUntilIsFromNowOn(t *testing.T) {
	lined(t, TokenBucket(PerSecond(1), 1), func(t *testing.T, l *Limiter, k Key) {
		l.TakeKey(k, 1)
		first, second := place(t, l, k, 1), place(t, l, k, 1)
		time.Sleep(400 * time.Millisecond)
		assert.Equal(t, 600*time.Millisecond, first.Until(func() {}))
		assert.Equal(t, 1600*time.Millisecond, second.Until(func() {}))
		time.Sleep(1200 * time.Millisecond)
		first.Leave()
		assert.LessOrEqual(t, second.Until(func() {}), time.Duration(0))
		second.Leave()
	})
}

// TestUntilIsByTheLimitersClock, which stands still here.
func TestUntilIsByTheLimitersClock(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := pinned(t, &now, TokenBucket(PerSecond(1), 1))
	k := l.Key("k")
	l.TakeKey(k, 1)
	turn := place(t, l, k, 1)
	assert.Equal(t, time.Second, turn.Until(func() {}))
	now = now.Add(time.Second - 1)
	assert.Equal(t, time.Duration(1), turn.Until(func() {}))
	turn.Leave()
}
