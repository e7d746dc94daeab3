package engine

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sharedfile"
)

// calendars returns the path of a file and a function that attaches limiters to it.
func calendars(t *testing.T, now *time.Time) (attach func(p Policy, options ...Option) (*Limiter, error), path string) {
	path = filepath.Join(t.TempDir(), "table")
	return func(p Policy, options ...Option) (*Limiter, error) {
		l, err := New(p, append([]Option{Shared(path), MaxKeys(100), ClockFunc(func() time.Time { return *now })}, options...)...)
		if err == nil {
			t.Cleanup(func() { assert.NoError(t, l.Close()) })
		}
		return l, err
	}, path
}

// TestCalendarsInAFile: a period ends for all processes of a file at the same nanosecond.
func TestCalendarsInAFile(t *testing.T) {
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
		attach, _ := calendars(t, &now)
		p := CalendarWindow(100, c.per, berlin)
		one, err := attach(p)
		require.NoError(t, err)
		other, err := attach(p)
		require.NoError(t, err)
		require.True(t, one.Take("k", 60).Allowed)
		require.True(t, other.Take("k", 40).Allowed)
		d := one.Take("k", 1)
		require.False(t, d.Allowed)
		require.Equal(t, time.Nanosecond, d.RetryAfter)
		now = from
		d, held := other.Hold(other.Key("k"), 60)
		require.True(t, d.Allowed)
		require.Equal(t, next.Sub(from), d.ResetAfter)
		now = next.Add(-time.Nanosecond)
		require.False(t, one.Take("k", 41).Allowed)
		now = next
		require.True(t, one.Take("k", 30).Allowed)
		require.Zero(t, held.Settle(10))
		require.EqualValues(t, 70, left(other, "k"))
		third, err := attach(p)
		require.NoError(t, err)
		require.EqualValues(t, 70, left(third, "k"), "so does a process that comes later")
	}
}

// TestNumbersOfACalendarInAFile: a change of the numbers applies to all processes, and keeps the period and the zone.
func TestNumbersOfACalendarInAFile(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	attach, path := calendars(t, &now)
	month := func(limit uint64) Policy { return CalendarWindow(limit, Month, berlin) }
	one, err := attach(month(100), Tiers(month(500), Blocked()))
	require.NoError(t, err)
	other, err := attach(month(100), Tiers(month(500), Blocked()))
	require.NoError(t, err)
	require.True(t, one.Take("k", 80).Allowed)
	require.True(t, one.TakeKey(one.Key("paid").Tier(1), 450).Allowed)
	require.NoError(t, one.SetPolicy(month(200), month(1000), Blocked()))
	require.EqualValues(t, 120, left(other, "k"))
	require.EqualValues(t, 550, other.Peek(other.Key("paid").Tier(1), 0).Remaining)
	require.Equal(t, month(200), other.Policy(0))
	require.NoError(t, other.SetPolicy(Unlimited(), Unlimited(), Unlimited()))
	require.True(t, one.Take("k", 1000).Allowed)
	require.NoError(t, one.SetPolicy(month(200), month(1000), month(3)))
	require.EqualValues(t, 120, left(other, "k"))
	for _, p := range []Policy{CalendarWindow(200, Week, berlin), CalendarWindow(200, Month, nil), FixedWindow(200, Month.Longest()).Aligned()} {
		assert.ErrorContains(t, one.SetPolicy(p, p, p), "the file is of fixed window, month of Europe/Berlin, rules ", "%v", p)
		_, err := attach(p, Tiers(p, p))
		assert.ErrorContains(t, err, "algorithm: ", "%v", p)
	}
	_, err = attach(month(300), Tiers(month(1000), month(3)))
	assert.ErrorContains(t, err, `policy: the file has "fixed window 200/month of Europe/Berlin"`)
	_, err = attach(month(300), Tiers(month(1000), month(3)), ReplacePolicy())
	require.NoError(t, err)
	require.EqualValues(t, 220, left(one, "k"))

	table, err := ReadShared(path)
	require.NoError(t, err)
	assert.Equal(t, []Policy{month(300), month(1000), month(3)}, table.Policies)
	assert.EqualValues(t, 2, table.Indebted)
}

// TestCopiesOfCalendars: in a copy of the file, each key has as many tokens left in the current period.
func TestCopiesOfCalendars(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	p := CalendarWindow(100, Month, berlin)
	attach := func(path string, keys int) *Limiter {
		l, err := New(p, Shared(path), MaxKeys(keys))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		return l
	}
	l := attach(path, 100)
	require.True(t, l.Take("k", 30).Allowed)
	require.NoError(t, CopyShared(path, path+".larger", MaxKeys(1000)))
	require.EqualValues(t, 70, left(attach(path+".larger", 1000), "k"))
	require.NoError(t, CopyShared(path, path+".copy"))
	l.Reset(l.Key("k"))
	require.EqualValues(t, 100, left(l, "k"))
	require.NoError(t, RestoreShared(path+".copy", path))
	require.EqualValues(t, 70, left(l, "k"))
	week, err := New(CalendarWindow(100, Week, berlin), Shared(path+".week"), MaxKeys(100))
	require.NoError(t, err)
	require.NoError(t, week.Close())
	require.Error(t, RestoreShared(path+".copy", path+".week"))
}

// TestRulesOfZones: a process with other rules of the zone is refused, because its periods would begin at other times.
func TestRulesOfZones(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	attach, path := calendars(t, &now)
	_, err := attach(CalendarWindow(100, Day, berlin))
	require.NoError(t, err)
	_, err = attach(CalendarWindow(100, Day, time.FixedZone("Europe/Berlin", 3600)))
	require.ErrorContains(t, err, "algorithm: ")
	require.ErrorContains(t, err, "rules ")
	_, err = ReadShared(path)
	require.NoError(t, err)

	attach, path = calendars(t, &now)
	_, err = attach(CalendarWindow(100, Day, time.FixedZone("Europe/Berlin", 3600)))
	require.NoError(t, err)
	_, err = ReadShared(path)
	require.ErrorContains(t, err, "algorithm: the file has \"fixed window, day of Europe/Berlin, rules ")

	attach, path = calendars(t, &now)
	_, err = attach(CalendarWindow(100, Day, time.FixedZone("Mars/Base", 3600)))
	require.NoError(t, err)
	_, err = ReadShared(path)
	require.ErrorContains(t, err, "unknown time zone Mars/Base")
	_, err = attach(CalendarWindow(100, Day, time.FixedZone("a\nMaxKeys: 5", 3600)))
	require.ErrorContains(t, err, "control characters")
}

// TestForeignNumbersOfCalendars: numbers of another kind of limit in the file of a calendar window are reported as
// damage.
func TestForeignNumbersOfCalendars(t *testing.T) {
	for name, p := range map[string]Policy{
		"another period": FixedWindow(5, Week.Longest()).Aligned(), "not aligned": FixedWindow(5, Day.Longest()),
		"another algorithm": SlidingWindow(5, Day.Longest()), "none": Blocked(),
	} {
		path := filepath.Join(t.TempDir(), "table")
		c := config{maxKeys: 100, shards: 1, sharedPath: path}
		ps := newPolicySet(CalendarWindow(5, Day, nil), nil)
		layout, err := c.layoutFor(ps)
		require.NoError(t, err)
		bytes, err := layout.SharedBytes()
		require.NoError(t, err)
		f, err := sharedfile.Open(path, sharedfile.Spec{
			Fields: c.fields(ps), Bytes: bytes, Settle: layout.Settle, Mark: layout.Mark,
			Begin: func(memory []byte) error {
				numbers := ps.numbers()
				copy(numbers, p.numbers(p.grant, 5))
				return layout.Begin(memory, numbers)
			},
		})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		_, err = ReadShared(path)
		assert.ErrorContains(t, err, "the table is of a day of UTC", name)
		_, err = New(CalendarWindow(5, Day, nil), Shared(path), MaxKeys(100), Shards(1))
		assert.ErrorContains(t, err, "damaged", name)
	}
}
