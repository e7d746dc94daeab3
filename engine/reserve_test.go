package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func inBubble(t *testing.T, policy Policy, f func(t *testing.T, l *Limiter)) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(policy, MaxKeys(100), ClockPrecise())
		require.NoError(t, err)
		defer l.Close()
		f(t, l)
	})
}

// With a token bucket, waiting calls get their tokens in the order in which they came, each exactly when they are
// available.
func TestWaitServesInOrder(t *testing.T) {
	inBubble(t, TokenBucket(PerSecond(1), 2), func(t *testing.T, l *Limiter) {
		require.True(t, l.Take("k", 2).Allowed)
		begin, served := time.Now(), make(chan int, 9)
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				assert.NoError(t, l.Wait(t.Context(), "k", 1))
				assert.Equal(t, time.Duration(i+1)*time.Second, time.Since(begin))
				served <- i
			})
			synctest.Wait()
		}
		require.False(t, l.Allow("k"), "who does not wait is behind those who do")
		all.Wait()
		for i := range 5 {
			require.Equal(t, i, <-served)
		}
	})
}

// If a wait would end after the deadline, Wait returns an error at once, and takes nothing.
func TestWaitFailsAtOnceBeyondTheDeadline(t *testing.T) {
	for _, policy := range []Policy{
		TokenBucket(PerSecond(1), 5), BatchRefill(5, 5*time.Second, 5), FixedWindow(5, 5*time.Second),
		SlidingWindow(5, 5*time.Second), SlidingLog(5, 5*time.Second),
	} {
		t.Run(policy.String(), func(t *testing.T) {
			inBubble(t, policy, func(t *testing.T, l *Limiter) {
				require.True(t, l.Take("k", 5).Allowed)
				before := l.Peek(l.Key("k"), 5)
				ctx, cancel := context.WithTimeout(t.Context(), before.RetryAfter-1)
				defer cancel()
				begin := time.Now()
				require.ErrorIs(t, l.Wait(ctx, "k", 5), ErrTooLong)
				require.ErrorIs(t, l.Wait(ctx, "k", 6), ErrNever)
				require.Zero(t, time.Since(begin))
				require.Equal(t, before, l.Peek(l.Key("k"), 5), "nothing was taken")
				ctx2, cancel2 := context.WithTimeout(t.Context(), before.RetryAfter+1)
				defer cancel2()
				require.NoError(t, l.Wait(ctx2, "k", 5), "just before the deadline")
				require.Equal(t, before.RetryAfter, time.Since(begin))
				done, stop := context.WithCancel(t.Context())
				stop()
				require.ErrorIs(t, l.Wait(done, "k", 1), context.Canceled)
				require.NoError(t, l.Wait(t.Context(), "k", 0))
			})
		})
	}
}

// If a waiting call gives up, its tokens come back.
func TestWaitGivesBackWhenItIsCancelled(t *testing.T) {
	inBubble(t, TokenBucket(PerSecond(1), 2), func(t *testing.T, l *Limiter) {
		require.True(t, l.Take("k", 2).Allowed)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { assert.ErrorIs(t, l.Wait(ctx, "k", 2), context.Canceled) })
		synctest.Wait()
		require.Equal(t, 3*time.Second, l.Peek(l.Key("k"), 1).RetryAfter)
		cancel()
		all.Wait()
		require.Equal(t, time.Second, l.Peek(l.Key("k"), 1).RetryAfter)

		r, err := l.ahead(l.Key("k"), 1, time.Minute)
		require.NoError(t, err)
		require.Equal(t, time.Second, r.delay)
		time.Sleep(time.Second)
		require.True(t, r.Release())
		require.Zero(t, l.Peek(l.Key("k"), 1).RetryAfter, "its time had come, and it was not used")
		require.True(t, l.Allow("k"))
		r, err = l.ahead(l.Key("k"), 1, time.Minute)
		require.NoError(t, err)
		require.True(t, r.Release())
		require.False(t, r.Release())
		require.Equal(t, time.Second, l.Peek(l.Key("k"), 1).RetryAfter)
	})
}

// If the queue of reservations is full, Reserve returns an error.
func TestReserveHasAnEnd(t *testing.T) {
	inBubble(t, TokenBucket(PerSecond(1), 2), func(t *testing.T, l *Limiter) {
		_, err := l.ahead(l.Key("k"), 3, time.Hour)
		require.ErrorIs(t, err, ErrNever)
		r, err := l.ahead(l.Key("k"), 2, 0)
		require.NoError(t, err)
		require.Zero(t, r.delay)
		_, err = l.ahead(l.Key("k"), 1, time.Second-1)
		require.ErrorIs(t, err, ErrTooLong)
		require.ErrorContains(t, err, "1s, and 999.999999ms is the longest")
		r, err = l.ahead(l.Key("k"), 1, time.Second)
		require.NoError(t, err)
		require.Equal(t, time.Second, r.delay)
		for err == nil {
			_, err = l.ahead(l.Key("k"), 2, Never)
			if l.Peek(l.Key("k"), 1).ResetAfter < 25*24*time.Hour {
				_, _ = l.ahead(l.Key("k"), 2, Never)
			}
		}
		require.ErrorIs(t, err, ErrTooLong, "2^51 ns")
		assert.InDelta(t, float64(1<<51), float64(l.Peek(l.Key("k"), 1).ResetAfter), 3e9)
	})
	inBubble(t, FixedWindow(1, time.Second), func(t *testing.T, l *Limiter) {
		_, err := l.ahead(l.Key("k"), 1, time.Hour)
		require.ErrorIs(t, err, ErrNotTokenBucket)
	})
}

// TestTheReceiptOfAReservation: when a reservation is due, its receipt gives back exactly its tokens.
func TestTheReceiptOfAReservation(t *testing.T) {
	inBubble(t, TokenBucket(PerSecond(1), 2), func(t *testing.T, l *Limiter) {
		require.True(t, l.Take("k", 2).Allowed)
		ahead, err := l.ahead(l.Key("k"), 2, time.Minute)
		require.NoError(t, err)
		time.Sleep(ahead.delay)
		require.Zero(t, l.Peek(l.Key("k"), 0).Remaining)
		ahead.Refund(1)
		require.EqualValues(t, 1, l.Peek(l.Key("k"), 0).Remaining)
		ahead.Refund(9)
		require.EqualValues(t, 2, l.Peek(l.Key("k"), 0).Remaining)

		require.True(t, l.Take("k", 2).Allowed)
		ahead, err = l.ahead(l.Key("k"), 2, time.Minute)
		require.NoError(t, err)
		require.True(t, ahead.Release())
		ahead.Refund(2)
		require.Zero(t, ahead.Settle(9))
		require.Equal(t, 2*time.Second, l.Peek(l.Key("k"), 0).ResetAfter, "it was released, once")
	})
}

// A change of the policy does not forgive tokens that were taken in advance.
func TestSetPolicyKeepsReservations(t *testing.T) {
	inBubble(t, TokenBucket(PerSecond(1), 2), func(t *testing.T, l *Limiter) {
		for range 3 {
			_, err := l.ahead(l.Key("k"), 2, time.Minute)
			require.NoError(t, err)
		}
		require.Equal(t, 6*time.Second, l.Peek(l.Key("k"), 1).ResetAfter)
		require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(10), 4)))
		require.Equal(t, 4200*time.Millisecond, l.Peek(l.Key("k"), 1).ResetAfter, "the last goes in four seconds, as it was told")
		require.Equal(t, 3900*time.Millisecond, l.Peek(l.Key("k"), 1).RetryAfter)
		require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(1), 2)))
		require.Equal(t, 7800*time.Millisecond, l.Peek(l.Key("k"), 1).ResetAfter)
	})
}

func ExampleLimiter_Wait() {
	limiter, err := New(TokenBucket(PerSecond(1000), 1))
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	for page := range 3 {
		if err := limiter.Wait(context.Background(), "crawler", 1); err != nil {
			panic(err)
		}
		fmt.Println("fetch page", page)
	}
	// Output:
	// fetch page 0
	// fetch page 1
	// fetch page 2
}
