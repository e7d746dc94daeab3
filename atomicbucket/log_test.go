package atomicbucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestALogOfTwoNanoseconds: with ticks of two nanoseconds, a request leaves the window one tick late. The same is true
// in a log that follows this log. Two ticks must be at most a hundred-thousandth of the following log's window.
func TestALogOfTwoNanoseconds(t *testing.T) {
	log, err := NewSlidingLog(100, 100, 100*time.Second)
	require.NoError(t, err)
	require.EqualValues(t, 2, log.clock.first(1))
	require.EqualValues(t, 50e9+1, log.length)
	require.Equal(t, 400*time.Microsecond, log.shortest())
	follow := func(window time.Duration) (*SlidingLog, error) {
		next, err := NewSlidingLog(7, 7, window)
		require.NoError(t, err)
		after, err := next.Following(&log)
		if err != nil {
			return nil, err
		}
		return after.(*SlidingLog), nil
	}
	_, err = follow(400*time.Microsecond - 1)
	require.ErrorContains(t, err, "in a window of 400µs to 2m17.438953472s")
	after, err := follow(400 * time.Microsecond)
	require.NoError(t, err)
	require.EqualValues(t, 200_001, after.length)
	after, err = follow(time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 30e9+1, after.length)
}

// TestALogFarFromItsTime: a log reads a request correctly from one skew before the request's time to twelve skews after
// it.
func TestALogFarFromItsTime(t *testing.T) {
	log, err := NewSlidingLog(5, 5, time.Minute)
	require.NoError(t, err)
	const at = 1 << 50
	skew := uint64(log.MaxSkew())
	for _, ahead := range []uint64{0, 1, skew / 2, skew - 1, skew} {
		ring := make(Ring, 5)
		ring.Clear(NewState(Claimed, 1, 0))
		full := Record{NewState(Live, 1, log.Full(at)), ring}
		payload, ok := log.Take(full, at+ahead, Demand{2, 5, 1})
		require.True(t, ok)
		after := full.After(payload)
		require.EqualValues(t, 2, log.Debt(after, at), "%d ahead", ahead)
		require.Equal(t, ahead+log.length, log.UntilIdle(after.State, at))
		for past := uint64(1); past <= 12; past++ {
			require.Zero(t, log.Debt(after, at+ahead+past*skew+1), "%d skews past", past)
			require.Equal(t, past*skew+1-log.length, log.IdleFor(after.State, at+ahead+past*skew+1))
		}
	}
}

// TestARefundOfALogBehindATimeAhead: if the newest request is ahead of a refund's clock, the refund gives back only
// requests that are not ahead of this clock.
func TestARefundOfALogBehindATimeAhead(t *testing.T) {
	log, err := NewSlidingLog(5, 5, time.Minute)
	require.NoError(t, err)
	const at = 1 << 50
	for cost, want := range map[uint64]uint64{1: 3, 2: 2, 3: 1, 4: 1, 5: 1} {
		ring := make(Ring, 5)
		ring.Clear(NewState(Claimed, 1, 0))
		record := Record{NewState(Live, 1, log.Full(at)), ring}
		var w Word
		for _, tick := range []uint64{at, at + 1, at + 2, at + 10} {
			payload, ok := log.Take(record, tick, Demand{1, 5, 1})
			require.True(t, ok)
			w.w.Store(uint64(record.State))
			require.True(t, log.Flush(record, tick, &w))
			record = record.After(payload)
		}
		w.w.Store(uint64(record.State))
		after, ok := log.Refund(record, Return{Now: at + 2, Latest: at + 10, Demand: Demand{cost, 5, 1}}, &w)
		require.True(t, ok)
		require.Equal(t, want, log.Debt(Record{after, ring}, at+10), cost)
	}
}

// TestARefundOfALogBehindTheNextTick: some tokens were taken one tick ahead of the clock. They may have used room that
// does not exist before that tick. So a refund gives back only the takes at earlier ticks.
func TestARefundOfALogBehindTheNextTick(t *testing.T) {
	log, err := NewSlidingLog(5, 5, time.Minute)
	require.NoError(t, err)
	const at = 1 << 50
	ring := make(Ring, 5)
	ring.Clear(NewState(Claimed, 1, 0))
	record := Record{NewState(Live, 1, log.Full(at)), ring}
	var w Word
	for _, tick := range []uint64{at, at + 1} {
		w.w.Store(uint64(record.State))
		require.True(t, log.Flush(record, tick, &w))
		payload, ok := log.Take(record, tick, Demand{1, 5, 1})
		require.True(t, ok)
		record = record.After(payload)
	}
	w.w.Store(uint64(record.State))
	after, ok := log.Refund(record, Return{Now: at, Latest: at + 1, Demand: Demand{2, 5, 1}}, &w)
	require.True(t, ok)
	require.EqualValues(t, 1, log.Debt(Record{after, ring}, at+1))
}

// TestALogOfNothingIsSoForALateCall: a log without requests is also empty for a late call.
func TestALogOfNothingIsSoForALateCall(t *testing.T) {
	log, err := NewSlidingLog(5, 5, time.Minute)
	require.NoError(t, err)
	const at = 1 << 50
	ring := make(Ring, 5)
	ring.Clear(NewState(Claimed, 1, 0))
	require.Zero(t, log.Debt(Record{NewState(Live, 1, log.Full(at)), ring}, at-7))
}

// TestTheWaitOfALog: the wait for one tick is not 0.
func TestTheWaitOfALog(t *testing.T) {
	log, err := NewSlidingLog(5, 5, time.Minute)
	require.NoError(t, err)
	require.Zero(t, log.Wait(7, 0))
	require.EqualValues(t, 1, log.Wait(7, 1))
}

// TestTheNumbersOfALog: numbers out of range return an error with the range.
func TestTheNumbersOfALog(t *testing.T) {
	for _, c := range []struct {
		limit, most uint64
		window      time.Duration
		err         string
	}{
		{1, 4096, time.Minute, ""},
		{1, 4097, time.Minute, "want 1 to 4096 tokens"},
		{0, 1, time.Minute, "want 1 to 1 tokens"},
		{3, 2, time.Minute, "want 1 to 2 tokens"},
		{1, 1, time.Microsecond - 1, "want a window of 1µs to 8760h0m0s"},
		{1, 1, MaxWindow + 1, "want a window of 1µs to 8760h0m0s"},
	} {
		_, err := NewSlidingLog(c.limit, c.most, c.window)
		if c.err == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.err)
		}
	}
}
