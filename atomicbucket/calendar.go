package atomicbucket

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// A Period is a period of a [Calendar].
type Period uint8

// A week begins on Monday, and a month on the 1st.
const (
	Day Period = iota + 1
	Week
	Month
)

// String returns the name of the period: "day".
func (p Period) String() string {
	if p < Day || p > Month {
		return fmt.Sprintf("Period(%d)", uint8(p))
	}
	return [...]string{"day", "week", "month"}[p-Day]
}

// Longest returns the length of the longest period of this kind. A period in which clocks are put back may be an hour
// or two longer.
func (p Period) Longest() time.Duration {
	return map[Period]time.Duration{Day: 24 * time.Hour, Week: 7 * 24 * time.Hour, Month: 31 * 24 * time.Hour}[p]
}

// day returns the day on which the n-th period begins, counted from 1 January 1970.
func (p Period) day(n int) int64 {
	switch p {
	case Week: // 1970 began on a Thursday
		return int64(7*n - 3)
	case Month:
		return time.Date(1970, time.January+time.Month(n), 1, 0, 0, 0, 0, time.UTC).Unix() / 86400
	}
	return int64(n)
}

// A Calendar knows when the days, weeks or months of a time zone begin, until 2262. A period begins at the first
// instant whose local date is the period's first day or later. So a day has 23 or 25 hours if clocks change in it, a
// day without a midnight begins at one o'clock, and a day that a zone skipped has length 0. A Calendar is immutable.
// Two calendars are the same pointer if their periods, the names of their zones and the beginnings of their periods are
// equal.
type Calendar struct {
	period Period
	zone   string
	starts []int64 // when each period begins, in nanoseconds since 1970; the first is the period number earliest
}

// earliest is the number of the first period of a calendar. In every zone, this period begins before 1970 begins in
// UTC.
const earliest = -2

// calendars contains all calendars that were made.
var calendars struct {
	sync.Mutex
	byKey map[calendarKey]*Calendar
}

type calendarKey struct {
	period Period
	zone   string
	hash   uint64 // a hash of when the periods begin, because two zones with one name may differ
}

// NewCalendar returns the calendar of a period in a zone; a nil zone means UTC. If p is not one of the periods, the
// error names it.
func NewCalendar(p Period, zone *time.Location) (*Calendar, error) {
	if p < Day || p > Month {
		return nil, fmt.Errorf("%v: want a day, a week or a month", p)
	}
	if zone == nil {
		zone = time.UTC
	}
	c := &Calendar{period: p, zone: zone.String(), starts: beginnings(p, zone)}
	calendars.Lock()
	defer calendars.Unlock()
	if calendars.byKey == nil {
		calendars.byKey = map[calendarKey]*Calendar{}
	}
	key := calendarKey{p, c.zone, sum(c.starts)}
	if existing := calendars.byKey[key]; existing != nil && slices.Equal(existing.starts, c.starts) {
		return existing, nil
	}
	calendars.byKey[key] = c
	return c, nil
}

func sum(instants []int64) (h uint64) {
	for _, n := range instants {
		h = (h ^ uint64(n)) * 0x9e3779b97f4a7c15
	}
	return h
}

// beginnings returns when the periods of a zone begin, ordered by date. The last element is the end of time.
func beginnings(p Period, zone *time.Location) (starts []int64) {
	const last = math.MaxInt64 / int64(time.Second)
	at := time.Unix(p.day(earliest)*86400, 0).AddDate(0, 0, -2).In(zone) // before the first period
	_, zoneEnd := at.ZoneBounds()
	zoneStart := int64(math.MinInt64)
	for n := earliest; ; n++ {
		midnight := p.day(n) * 86400
		for {
			_, offset := at.Zone()
			begin := max(zoneStart, midnight-int64(offset))
			if zoneEnd.IsZero() || begin < zoneEnd.Unix() {
				if begin > last {
					return append(starts, math.MaxInt64)
				}
				starts = append(starts, begin*int64(time.Second))
				break
			}
			at, zoneStart = zoneEnd, zoneEnd.Unix()
			if _, zoneEnd = at.ZoneBounds(); !zoneEnd.IsZero() && !zoneEnd.After(at) { // on a leap year's last day
				zoneEnd = at.Add(24 * time.Hour)
			}
		}
	}
}

// Period returns the period.
func (c *Calendar) Period() Period { return c.period }

// Zone returns the name of the zone.
func (c *Calendar) Zone() string { return c.zone }

// Sum returns a hash of when the periods begin. Calendars whose periods begin at different times have different sums,
// except by chance.
func (c *Calendar) Sum() uint64 { return sum(c.starts) }

// Number returns the number of the period at an instant, in nanoseconds since 1970. It depends only on the period's
// first date, so all calendars of one kind of period give a date the same number, whatever their zones are.
func (c *Calendar) Number(nanos int64) uint64 { return c.number(nanos) }

// Begin returns when the period with the given number begins, in nanoseconds since 1970. The last period of the
// calendar and all later ones begin at the end of time.
func (c *Calendar) Begin(number uint64) int64 { return c.starts[min(number, uint64(len(c.starts)-1))] }

// number returns the number of the period at an instant. The first period of the calendar has the number 0.
func (c *Calendar) number(nanos int64) uint64 {
	i, found := slices.BinarySearch(c.starts, nanos)
	if !found {
		return uint64(i - 1)
	}
	for i+1 < len(c.starts) && c.starts[i+1] == nanos { // a day that the zone skipped
		i++
	}
	return uint64(i)
}

// Wait returns the time from an instant, in nanoseconds since 1970, until a number of periods have begun.
func (c *Calendar) Wait(nanos int64, periods uint64) time.Duration {
	n := c.number(nanos)
	return time.Duration(c.starts[min(periods, uint64(len(c.starts)-1)-n)+n] - nanos)
}
