package engine

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
)

// TestCalendarWindow: a day has 23, 24 or 25 hours, and RetryAfter is exact.
func TestCalendarWindow(t *testing.T) {
	for _, c := range []struct {
		per        Period
		from, next string
	}{
		{Day, "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"}, // 23 hours
		{Day, "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"}, // 25 hours
		{Week, "2026-03-23T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{Month, "2026-02-01T00:00:00+01:00", "2026-03-01T00:00:00+01:00"},
	} {
		from, err := time.Parse(time.RFC3339, c.from)
		require.NoError(t, err)
		next, err := time.Parse(time.RFC3339, c.next)
		require.NoError(t, err)
		now := from.Add(-time.Nanosecond)
		l, err := New(CalendarWindow(100, c.per, berlin), MaxKeys(1000), ClockFunc(func() time.Time { return now }))
		require.NoError(t, err)
		require.True(t, l.Take("k", 100).Allowed)
		d := l.Take("k", 1)
		require.False(t, d.Allowed)
		require.Equal(t, time.Nanosecond, d.RetryAfter)
		now = from
		d, held := l.Hold(l.Key("k"), 60)
		require.True(t, d.Allowed)
		require.Equal(t, next.Sub(from), d.ResetAfter)
		now = next.Add(-time.Nanosecond)
		require.False(t, l.Take("k", 41).Allowed)
		now = next
		require.True(t, l.Take("k", 30).Allowed)
		require.Zero(t, held.Settle(10))
		require.EqualValues(t, 70, left(l, "k"), "nobody else's charge is erased")
		require.NoError(t, l.Close())
	}
}

// TestCalendarPolicies: SetPolicy can change one calendar policy to another.
func TestCalendarPolicies(t *testing.T) {
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	require.NoError(t, err)
	again, err := time.LoadLocation("Asia/Tokyo")
	require.NoError(t, err)
	p := CalendarWindow(5, Month, tokyo)
	require.Equal(t, p, CalendarWindow(5, Month, again))
	require.True(t, p == CalendarWindow(5, Month, again))
	require.Equal(t, "fixed window 5/month of Asia/Tokyo", p.String())
	per, zone, ok := p.Calendar()
	require.True(t, ok)
	require.Equal(t, Month, per)
	require.Equal(t, "Asia/Tokyo", zone)
	_, _, ok = FixedWindow(5, time.Hour).Aligned().Calendar()
	require.False(t, ok)
	for _, bad := range []Policy{CalendarWindow(5, 0, nil), CalendarWindow(5, 9, nil), CalendarWindow(0, Day, nil), CalendarWindow(1<<33, Day, nil)} {
		require.ErrorContains(t, bad.Check(), "want", "%v", bad)
	}
	l, _ := newLimiter(t, CalendarWindow(5, Day, tokyo))
	require.True(t, l.Take("k", 3).Allowed)
	require.NoError(t, l.SetPolicy(CalendarWindow(9, Week, nil)))
	require.EqualValues(t, 6, left(l, "k"))
}
