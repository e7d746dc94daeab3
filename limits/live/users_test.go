package live

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

func unused(t *testing.T) *engine.Limiter {
	t.Helper()
	l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func owing(t *testing.T, l *Limiter) *Limiter {
	t.Helper()
	l.Charge(l.Key("a"), 1)
	l.Sweep()
	next, err := l.Replace(unused(t))
	require.NoError(t, err)
	return next
}

// TestEveryLimiterIsClosed: a limiter without users is closed, even if several limiters had it as a previous limiter.
func TestEveryLimiterIsClosed(t *testing.T) {
	first := New(unused(t))
	second := owing(t, first)
	first.Release()
	third := owing(t, second)
	require.Len(t, third.formers.load(), 2)
	second.Release()
	require.EqualValues(t, 1, first.owners.Load())
	third.Release()
	for i, l := range []*Limiter{first, second, third} {
		require.Zero(t, l.owners.Load(), i)
	}
}

// TestUsersThatEndTogether: of two users that release a limiter at the same time, exactly one closes it.
func TestUsersThatEndTogether(t *testing.T) {
	first := New(unused(t))
	for range 2000 {
		l := owing(t, first)
		l.Acquire()
		var both sync.WaitGroup
		var ready atomic.Int64
		for range 2 {
			both.Go(func() {
				for ready.Add(1); ready.Load() < 2; {
					runtime.Gosched()
				}
				l.Release()
			})
		}
		both.Wait()
		require.EqualValues(t, 1, first.owners.Load())
		require.Zero(t, l.owners.Load())
	}
}

// TestWhatIsHandedOverTwice: only the part of a debt that the next limiter had no room for is charged later.
func TestWhatIsHandedOverTwice(t *testing.T) {
	limiter, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 100), engine.MaxKeys(1))
	require.NoError(t, err)
	l := New(limiter)
	defer l.Release()
	k, c := l.Key("a"), l.refCounted
	c.raiseMaxDebt(100)
	var charged []uint64
	hands := func(room uint64) {
		c.move(k, func(n uint64) uint64 {
			charged = append(charged, n)
			return n - min(n, room)
		})
	}
	l.Charge(k, 10)
	hands(10)
	l.Charge(k, 5)
	c.users.Store(0) // no configuration takes tokens any longer
	hands(2)
	owes, _ := l.Owed(k)
	require.EqualValues(t, 5, owes, "the 10 are taken back")
	hands(3)
	owes, _ = l.Owed(k)
	require.Zero(t, owes)
	require.Equal(t, []uint64{10, 5, 3}, charged)
	c.users.Store(1)
}
