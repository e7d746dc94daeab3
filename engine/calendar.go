package engine

import (
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// A Period is a period of the calendar: see [CalendarWindow].
type Period = atomicbucket.Period

// The periods of a [CalendarWindow].
const (
	Day   = atomicbucket.Day
	Week  = atomicbucket.Week  // from Monday
	Month = atomicbucket.Month // from the 1st
)

// CalendarWindow limits how many tokens each key gets in a calendar day, week (from Monday) or month (from the 1st) of
// the time zone in the parameter zone. A nil zone means UTC. The window is a [FixedWindow] that begins when the period
// begins, at the same time for all keys. A period begins at the first instant whose local date is the first day of the
// period or later. So a day has 23 or 25 hours when clocks change, and a date that the zone skipped has no period. The
// parameter limit is the highest number of tokens, 1 to 2^32. Periods are known until 2262, according to the zone's
// rules at the time when the policy is made. To apply newer rules, make the policy again and pass it to
// [Limiter.SetPolicy]: tokens that keys have used still count. Up to twice the limit may be admitted within a moment,
// when one period ends and the next one begins. A slot takes 16 bytes, a key 27 ([MaxKeys]). [Policy.Window] is 24
// hours, 7 days or 31 days.
//
// The limiter's clock determines when periods begin. This clock is set to the machine's wall clock when the limiter is
// made. With [Shared] the clock is set when the file is made, and again after the machine was booted. After that,
// neither a change of the wall clock nor a sleep of the machine moves the limiter's clock. So after such an event,
// periods begin late or early until the next restart. No period begins twice.
func CalendarWindow(limit uint64, per Period, zone *time.Location) Policy {
	c, err := atomicbucket.NewCalendar(per, zone)
	p := Policy{algorithm: AlgorithmFixedWindow, limit: limit, aligned: true, per: per, calendar: c}
	if err == nil {
		p.window = per.Longest()
	}
	return p
}

// Calendar returns the period and the name of the time zone of a [CalendarWindow]. The result ok is false for any other
// policy.
func (p Policy) Calendar() (per Period, zone string, ok bool) {
	if p.calendar == nil {
		return 0, "", false
	}
	return p.per, p.calendar.Zone(), true
}
