package engine

import (
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// A Period is a period of the calendar for a [CalendarWindow].
type Period = atomicbucket.Period

// The periods of a [CalendarWindow].
const (
	Day   = atomicbucket.Day
	Week  = atomicbucket.Week  // from Monday
	Month = atomicbucket.Month // from the 1st
)

// CalendarWindow limits how many tokens each key gets in a calendar day, week or month. Weeks begin on Monday, and
// months on the 1st. The limit is 1 to 2^32. A nil time zone means UTC. The window is a [FixedWindow] that begins with
// the period, at the same time for all keys. So up to twice the limit may be admitted within a moment, when a period
// ends. [Policy.Window] is 24 hours, 7 days or 31 days.
//
// Periods follow the local dates of the zone. A period begins at the first instant whose local date is the period's
// first day or later. So a day has 23 or 25 hours when clocks change, and a date that the zone skipped has no period.
// Periods are known until 2262, by the zone's rules at the time of this call. To apply newer rules, pass a new policy
// to [Limiter.SetPolicy].
//
// Periods follow the wall clock, to which New sets the limiter's clock. With [Shared], the clock is set when the file
// is made, and after each boot. If the wall clock changes later, or the machine sleeps, periods begin late or early
// until the next restart, but never twice.
func CalendarWindow(limit uint64, period Period, zone *time.Location) Policy {
	c, err := atomicbucket.NewCalendar(period, zone)
	p := Policy{algorithm: AlgorithmFixedWindow, limit: limit, aligned: true, period: period, calendar: c}
	if err == nil {
		p.window = period.Longest()
	}
	return p
}

// Calendar returns the period and the name of the time zone of a [CalendarWindow]. For other policies, ok is false.
func (p Policy) Calendar() (period Period, zone string, ok bool) {
	if p.calendar == nil {
		return 0, "", false
	}
	return p.period, p.calendar.Zone(), true
}
