package atomicbucket

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
)

// zones has time zones with whole, half and quarter hours, ahead of UTC and behind it. Some of their days begin
// unusually: at one o'clock, twice, or not at all.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/Havana", "Asia/Beirut", "Africa/Cairo",
	"America/St_Johns", "Pacific/Apia", "Pacific/Kwajalein", "Pacific/Kiritimati", "Asia/Kathmandu", "Australia/Lord_Howe",
	"Africa/Casablanca", "America/Asuncion", "Asia/Tehran", "Pacific/Chatham", "Antarctica/Troll", "Etc/GMT+12", "Etc/GMT-14",
}

func firstDay(p Period, t time.Time) (year int, month time.Month, day int) {
	switch year, month, day = t.Date(); p {
	case Week:
		back := (int(t.Weekday()) + 6) % 7
		return time.Date(year, month, day-back, 12, 0, 0, 0, time.UTC).Date()
	case Month:
		return year, month, 1
	}
	return year, month, day
}

// TestPeriodsBeginWithTheirDates: in every zone and over decades, a period begins at the first instant whose local date
// is the first day of the period. If the day has exactly one midnight, time.Date gives the same result.
func TestPeriodsBeginWithTheirDates(t *testing.T) {
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		for _, p := range []Period{Day, Week, Month} {
			c, err := NewCalendar(p, zone)
			require.NoError(t, err)
			agrees, all := 0, 0
			for i, at := range c.starts[1:] {
				begin := time.Unix(0, at).In(zone)
				if begin.Year() > 2045 {
					break
				}
				date := time.Unix(p.day(i+1+earliest)*86400, 0).UTC()
				local := func(at time.Time) time.Time { y, m, d := at.Date(); return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }
				require.False(t, local(begin).Before(date), "%v of %s begins at %v", p, name, begin)
				for early := time.Nanosecond; early < 2*time.Hour; early += 30 * time.Minute {
					require.True(t, local(begin.Add(-early)).Before(date), "%v of %s, %v before %v", p, name, early, begin)
				}
				y, m, d := date.Date()
				if all++; begin.Equal(time.Date(y, m, d, 0, 0, 0, 0, zone)) {
					agrees++
				}
				require.Equal(t, at, c.starts[c.number(at)])
				require.Less(t, c.number(at-1), c.number(at))
			}
			require.Greater(t, agrees*100, all*96, "%v of %s: %d of %d are midnights of time.Date", p, name, agrees, all)
		}
	}
}

// TestPeriodsOfEveryHour: each hour is in the period of its local date. There is one exception: if clocks are put back
// past the beginning of a period, that period does not end.
func TestPeriodsOfEveryHour(t *testing.T) {
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		for _, p := range []Period{Day, Week, Month} {
			c, err := NewCalendar(p, zone)
			require.NoError(t, err)
			odd := 0
			for at := time.Unix(0, 0).In(zone); at.Year() < 2030; at = at.Add(time.Duration(p*p*p) * time.Hour) {
				y, m, d := firstDay(p, at)
				begin := time.Unix(p.day(int(c.number(at.UnixNano()))+earliest)*86400, 0).UTC()
				if by, bm, bd := begin.Date(); by != y || bm != m || bd != d {
					require.True(t, begin.After(time.Date(y, m, d, 0, 0, 0, 0, time.UTC)), "%v in %v", at, p)
					odd++
				}
			}
			require.Less(t, odd, 90, "%v of %s", p, name)
		}
	}
}

// TestWaitForAPeriod: the awaited periods have begun when the wait ends, and not a nanosecond before.
func TestWaitForAPeriod(t *testing.T) {
	zone, err := time.LoadLocation("Pacific/Apia")
	require.NoError(t, err)
	c, err := NewCalendar(Day, zone)
	require.NoError(t, err)
	before := time.Date(2011, 12, 29, 20, 0, 0, 0, zone) // the zone skipped the 30th
	wait := c.Wait(before.UnixNano(), 1)
	require.Equal(t, 4*time.Hour, wait)
	require.Equal(t, "2011-12-31T00:00:00+14:00", before.Add(wait).Format(time.RFC3339))
	for _, name := range []string{"Europe/Berlin", "America/Sao_Paulo"} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		w, err := NewCalendarWindow(5, 5, must(NewCalendar(Month, zone)), Month.Longest())
		require.NoError(t, err)
		for at := time.Date(1999, 1, 1, 0, 0, 0, 1, zone); at.Year() < 2030; at = at.Add(31 * time.Hour) {
			now := at.UnixNano()
			for ticks := range uint64(4) {
				wait := int64(w.Wait(now, ticks))
				require.Equal(t, w.Ticks(now)+ticks, w.Ticks(now+wait))
				require.True(t, ticks == 0 || w.Ticks(now+wait-1) < w.Ticks(now)+ticks)
			}
		}
		require.Equal(t, time.Duration(1<<63-1), w.Wait(0, 1<<40), "the end of time")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestCalendarsAreValues: there is one calendar for each period and zone. Zones with the same name and different times
// get two calendars.
func TestCalendarsAreValues(t *testing.T) {
	a, b := must(time.LoadLocation("Asia/Tokyo")), must(time.LoadLocation("Asia/Tokyo"))
	require.Same(t, must(NewCalendar(Day, a)), must(NewCalendar(Day, b)))
	require.NotSame(t, must(NewCalendar(Day, a)), must(NewCalendar(Week, b)))
	require.NotSame(t, must(NewCalendar(Day, time.FixedZone("X", 3600))), must(NewCalendar(Day, time.FixedZone("X", 7200))))
	require.Same(t, must(NewCalendar(Day, nil)), must(NewCalendar(Day, time.UTC)))
	for _, p := range []Period{0, Month + 1} {
		_, err := NewCalendar(p, nil)
		require.ErrorContains(t, err, "want a day, a week or a month")
	}
}
