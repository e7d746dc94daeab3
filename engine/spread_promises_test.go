package engine

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheCellsOfASpread: the number of cells is the number of processors, rounded up to a power of two, and at most
// 128.
func TestTheCellsOfASpread(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for processors, cells := range map[int]int{1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 64: 64, 65: 128, 128: 128, 200: 128} {
		runtime.GOMAXPROCS(processors)
		s, err := NewSpread(TokenBucket(PerSecond(1e6), 1000))
		require.NoError(t, err)
		assert.Equal(t, cells, s.bucket.Cells(), processors)
		assert.Equal(t, processors, runtime.GOMAXPROCS(0))
		require.NoError(t, s.Close())
	}
}

// TestWhatNewSpreadSaysOfAMistake: errors of NewSpread contain the wrong numbers.
func TestWhatNewSpreadSaysOfAMistake(t *testing.T) {
	fine := TokenBucket(PerSecond(1e6), 1000)
	_, err := NewSpread(fine, MaxDebt(2), ClockPrecise(), nil, MaxDebt(3))
	assert.EqualError(t, err, "engine: option 3 of 4 is nil")
	_, err = NewSpread(fine, Observe(func(Key, uint64) {}, 1))
	assert.ErrorContains(t, err, "one bucket takes the options ClockPrecise, ClockFunc and MaxDebt, and no others")
	_, err = NewSpread(fine, ClockFunc(func() time.Time { return time.Time{} }))
	assert.ErrorContains(t, err, "want a time from 1970 to 2261")
	for _, p := range []Policy{TokenBucket(PerSecond(0), 5), TokenBucket(PerSecond(5), 0), TokenBucket(PerSecond(5), 5).Aligned()} {
		_, want := New(p, MaxKeys(1))
		require.Error(t, want)
		_, err = NewSpread(p)
		assert.EqualError(t, err, want.Error())
	}
	for _, p := range []Policy{Unlimited(), Blocked(), TokenBuckets(time.Hour), FixedWindow(5, time.Second), BatchRefill(5, time.Second, 5)} {
		_, err = NewSpread(p)
		assert.EqualError(t, err, "engine: "+p.String()+": want engine.TokenBucket(rate, burst) for one bucket that is spread")
	}
	for _, p := range []Policy{TokenBucket(Per(1, 24*time.Hour), 5), TokenBucket(Per(1, time.Hour), 100_000)} {
		_, err = NewSpread(p)
		assert.ErrorContains(t, err, "engine: "+p.String()+": a burst of ")
	}
}

// TestASpreadAnswersAsALimiter: for the complete limit or 0 tokens, a Spread answers as a Limiter does.
func TestASpreadAnswersAsALimiter(t *testing.T) {
	var now atomic.Int64
	policy := TokenBucket(PerSecond(100), 30)
	s := spreadAt(t, &now, policy)
	l, err := New(policy, MaxKeys(1), ClockFunc(func() time.Time { return time.Unix(0, now.Load()) }))
	require.NoError(t, err)
	defer l.Close()
	k := l.Key("k")
	for i, n := range []uint64{0, 28, 0, 30, 31, 1} {
		assert.Equal(t, l.Peek(k, n), s.Peek(n), "peek %d for %d", i, n)
		want, of := l.TakeReceipt(k, n)
		d, r := s.TakeReceipt(n)
		assert.Equal(t, want, d, "take %d of %d", i, n)
		assert.Equal(t, of.Taken(), r.Taken())
		assert.Equal(t, of.Settle(n+2), r.Settle(n+2), "take %d of %d", i, n)
		owed, _ := l.Owed(k)
		assert.Equal(t, owed, s.Owed(), "take %d of %d", i, n)
	}
}

// TestAllowReadsNoClock: Allow does not read the clock while the processor's cell has tokens.
func TestAllowReadsNoClock(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	reads, now := 0, time.Unix(1_700_000_000, 0)
	s, err := NewSpread(TokenBucket(PerSecond(1e8), 1<<30), ClockFunc(func() time.Time { reads++; return now }))
	require.NoError(t, err)
	defer s.Close()
	for range 10_000 {
		require.True(t, s.Allow())
	}
	assert.Less(t, reads, 100)
}

// TestTheBackgroundOfASpread: the background of a Spread runs until it is closed, even if its clock has no counter.
func TestTheBackgroundOfASpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewSpread(TokenBucket(PerSecond(1e6), 1000), ClockFunc(time.Now))
		require.NoError(t, err)
		ended := false
		go func() {
			s.background.running.Wait()
			ended = true
		}()
		time.Sleep(3 * recalibrateEvery)
		synctest.Wait()
		assert.False(t, ended)
		require.NoError(t, s.Close())
		synctest.Wait()
		assert.True(t, ended)
	})
}

// TestASpreadCalibratesItsClock: a Spread calibrates its clock as often as a Limiter.
func TestASpreadCalibratesItsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counter := &counterClock{last: takeSample()}
		counter.current.Store(&calibration{})
		b := &background{clock: &clock{counter: counter}, stop: make(chan struct{})}
		b.running.Go(b.calibrate)
		begin := time.Now()
		time.Sleep(recalibrateEvery)
		synctest.Wait()
		assert.Equal(t, recalibrateEvery, counter.last.at.Sub(begin))
		b.halt()
	})
}

// TestADroppedSpreadEnds: the background of a dropped Spread stops when the garbage collector finds the Spread.
func TestADroppedSpreadEnds(t *testing.T) {
	s, err := NewSpread(TokenBucket(PerSecond(1e6), 1000))
	require.NoError(t, err)
	stopped := s.background.stop
	s = nil
	for {
		runtime.GC()
		select {
		case <-stopped:
			return
		default:
			runtime.Gosched()
		}
	}
}
