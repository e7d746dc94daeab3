package engine

import (
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// A Period is one of the calendar: see [CalendarWindow].
type Period = atomicbucket.Period

// The periods of a [CalendarWindow].
const (
	Day   = atomicbucket.Day
	Week  = atomicbucket.Week  // from Monday
	Month = atomicbucket.Month // from the 1st
)

// CalendarWindow limits each key to limit tokens in a day, a week from Monday or a month from the 1st of a time zone,
// nil for UTC: a [FixedWindow] that begins with the period, for all keys at once. A period begins at the first instant
// whose local date is its first day or later. So a day has 23 or 25 hours when clocks change, and a day that the zone
// has left out has none. limit is 1 to 2^32. Periods are known until 2262, as the zone's rules are when the policy is
// made; [Limiter.SetPolicy] takes over later rules and keeps what keys have used. Twice the limit may be admitted in a
// moment, at the edge of two periods. 16 bytes a slot, 27 a key ([MaxKeys]). [Policy.Window] is 24 hours, 7 or 31 days.
// Not for [Shared].
func CalendarWindow(limit uint64, per Period, zone *time.Location) Policy {
	c, err := atomicbucket.NewCalendar(per, zone)
	p := Policy{algorithm: AlgorithmFixedWindow, limit: limit, aligned: true, per: per, calendar: c}
	if err == nil {
		p.window = per.Longest()
	}
	return p
}

// Calendar returns the period and the name of the time zone of a [CalendarWindow]. It is not ok for another policy.
func (p Policy) Calendar() (per Period, zone string, ok bool) {
	if p.calendar == nil {
		return 0, "", false
	}
	return p.per, p.calendar.Zone(), true
}
