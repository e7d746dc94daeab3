package live

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

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

// owing returns the limiter that replaces another, which a key owes something.
func owing(t *testing.T, l *Limiter) *Limiter {
	t.Helper()
	l.Charge(l.Key("a"), 1)
	l.Sweep()
	next, err := l.Replace(unused(t))
	require.NoError(t, err)
	return next
}

// TestEveryLimiterIsClosed when nobody uses it, also if it is a previous one of several.
func TestEveryLimiterIsClosed(t *testing.T) {
	first := New(unused(t))
	second := owing(t, first)
	first.Release()
	third := owing(t, second)
	require.Len(t, third.formers.all(), 2)
	second.Release()
	require.EqualValues(t, 1, first.owners.Load())
	third.Release()
	for i, l := range []*Limiter{first, second, third} {
		require.Zero(t, l.owners.Load(), i)
	}
}

// TestUsersThatEndTogether: one of them is the last.
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
