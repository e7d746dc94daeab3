//go:build unix

package redislimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

// Periods of a time zone begin at the right microsecond of the server's clock, whatever this machine's clock shows.
func TestACalendarBeginsByTheServersClock(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for _, c := range []struct {
		name string
		per  engine.Period
		zone *time.Location
		last time.Time // the instant at which the next period begins
		days int
	}{
		{"day", engine.Day, berlin, time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), 1},
		{"day of 23 hours", engine.Day, berlin, time.Date(2026, 3, 30, 0, 0, 0, 0, berlin), 1},
		{"day of 25 hours", engine.Day, berlin, time.Date(2026, 10, 26, 0, 0, 0, 0, berlin), 1},
		{"week", engine.Week, time.UTC, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), 7},
		{"month", engine.Month, zone(t, "America/New_York"), time.Date(2027, 3, 1, 0, 0, 0, 0, zone(t, "America/New_York")), 28},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, store := miniAs(t, true)
			begin := c.last.AddDate(0, 0, -c.days)
			server.SetTime(begin)
			l := limiter(t, store, engine.CalendarWindow(100, c.per, c.zone), redislimit.TrustRefusals(0))
			require.Equal(t, redislimit.Strict, l.Mode())
			require.True(t, take(t, l, "k", 60).Allowed)
			d := take(t, l, "k", 41)
			require.False(t, d.Allowed)
			require.Equal(t, c.last.Sub(begin), d.RetryAfter)
			require.Equal(t, c.last.Sub(begin), d.ResetAfter)
			server.SetTime(c.last.Add(-time.Microsecond))
			require.EqualValues(t, 60, usedOf(t, l, "k"))
			server.SetTime(c.last)
			require.Zero(t, usedOf(t, l, "k"))
			old := hold(t, l, "k", 30)
			server.SetTime(c.last.AddDate(0, 0, 40))
			require.True(t, take(t, l, "k", 10).Allowed)
			old.Settle(0)
			more := hold(t, l, "k", 5)
			require.Zero(t, more.Settle(25))
			require.NoError(t, l.Settle(t.Context()))
			becomes(t, l, "k", 35)
		})
	}
}

// A period begins once, even if the server's clock goes back.
func TestAPeriodBeginsOnce(t *testing.T) {
	server, store := miniAs(t, true)
	l := limiter(t, store, engine.CalendarWindow(100, engine.Day, time.UTC), redislimit.TrustRefusals(0))
	midnight := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	server.SetTime(midnight.Add(time.Second))
	require.True(t, take(t, l, "k", 100).Allowed)
	server.SetTime(midnight.Add(-time.Second))
	require.False(t, take(t, l, "k", 1).Allowed)
	server.SetTime(midnight.Add(time.Hour))
	require.False(t, take(t, l, "k", 1).Allowed)
	// A period that began too early counts as the next period.
	server.SetTime(midnight.AddDate(0, 0, 30))
	require.True(t, take(t, l, "k", 100).Allowed)
	server.SetTime(midnight.Add(2 * time.Hour))
	require.False(t, take(t, l, "k", 1).Allowed)
	require.NoError(t, l.Refund(t.Context(), "k", 1))
	server.SetTime(midnight.AddDate(0, 0, 1))
	require.True(t, take(t, l, "k", 1).Allowed)
	server.SetTime(midnight.AddDate(0, 0, 2))
	require.True(t, take(t, l, "k", 100).Allowed)
}

// Each time the server's clock goes back and forward by more than a period, a key gets at most one more limit.
func TestACalendarWhoseClockGoesBackAndForth(t *testing.T) {
	server, store := miniAs(t, true)
	l := limiter(t, store, engine.CalendarWindow(10, engine.Day, time.UTC), redislimit.TrustRefusals(0))
	noon := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for days, more := range []int{0, 0, 10, 10, 10, 10} {
		key := fmt.Sprint(days)
		server.SetTime(noon)
		took, _ := all(t, l, key)
		require.Equal(t, 10, took)
		for range 3 {
			server.SetTime(noon.AddDate(0, 0, -days))
			took, _ = all(t, l, key)
			require.Zero(t, took, "%d days back", days)
			server.SetTime(noon)
			took, _ = all(t, l, key)
			require.Equal(t, more, took, "%d days", days)
		}
	}
}

// Nodes share a limit unless the time zone or the period differs.
func TestCalendarsOfNodes(t *testing.T) {
	server := redistest.Start(t)
	make := func(p engine.Policy) *redislimit.Limiter {
		l, err := redislimit.New(patient(t, server.URL()), "budget", p, redislimit.TrustRefusals(0))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		return l
	}
	a, b := make(engine.CalendarWindow(100, engine.Month, nil)), make(engine.CalendarWindow(150, engine.Month, time.UTC))
	require.True(t, take(t, a, "k", 100).Allowed)
	require.False(t, take(t, a, "k", 1).Allowed)
	require.True(t, take(t, b, "k", 50).Allowed, "more numbers, one count")
	require.False(t, take(t, b, "k", 1).Allowed)
	require.True(t, take(t, make(engine.CalendarWindow(100, engine.Month, zone(t, "Asia/Tokyo"))), "k", 100).Allowed)
	require.True(t, take(t, make(engine.CalendarWindow(100, engine.Week, time.UTC)), "k", 100).Allowed)
	assert.EqualValues(t, 200, a.Bound(time.Hour))
	assert.EqualValues(t, 300, a.Bound(30*24*time.Hour))
}

// The error of New says whether the time zone or the mode is wrong.
func TestCalendarsThatNoStoreKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		policy  engine.Policy
		options []redislimit.Option
		want    string
	}{
		"local":     {engine.CalendarWindow(1, engine.Day, time.FixedZone("Local", 3600)), nil, "not the same on every machine"},
		"unnamed":   {engine.CalendarWindow(1, engine.Day, time.FixedZone("", 3600)), nil, "not the same on every machine"},
		"own":       {engine.CalendarWindow(1, engine.Day, time.FixedZone("Here", 3600)), nil, "known only on this machine"},
		"disguised": {engine.CalendarWindow(1, engine.Day, time.FixedZone("Europe/Berlin", 3600)), nil, "known only on this machine"},
		"leased":    {engine.CalendarWindow(1<<32, engine.Day, nil), []redislimit.Option{redislimit.InMode(redislimit.Leased)}, "leases do not suit"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, redislimit.Check("budget", c.policy, c.options...), c.want)
		})
	}
}

// While the store is lost, the node's share decides, and the store is charged afterwards.
func TestACalendarWithoutTheStore(t *testing.T) {
	server := redistest.Start(t)
	l, err := redislimit.New(open(t, server.URL()), "budget", engine.CalendarWindow(100, engine.Month, nil), redislimit.Nodes(4))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	require.True(t, take(t, l, "k", 10).Allowed)
	server.Pause()
	require.Eventually(t, func() bool {
		_, err := l.Take(t.Context(), "other", 1)
		return err == nil && l.Stats().Store.Lost > 0
	}, backSoon, time.Millisecond)
	require.True(t, take(t, l, "k", 25).Allowed)
	require.False(t, take(t, l, "k", 1).Allowed)
	server.Resume()
	require.NoError(t, errOfSettle(t, l, backSoon))
	becomes(t, l, "k", 35)
}
