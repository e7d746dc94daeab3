package spec

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// calendar returns the policy for numbers whose rate is per day, week or month of the calendar.
func (l *Limit) calendar(problems *Errors, tier string, numbers Numbers) engine.Policy {
	before := len(*problems)
	if l.Algorithm != engine.AlgorithmFixedWindow {
		problems.add(tier, "rate", "rate %v: a %v of the calendar needs the algorithm %s: use it, or write the rate of a %s in d or h",
			numbers.Rate, numbers.Rate.calendar, Name(engine.AlgorithmFixedWindow), Name(l.Algorithm))
	}
	if numbers.Burst != nil {
		problems.add(tier, "burst", "burst %d: a fixed-window has none, because all of its limit, %v, may come at once: leave it out",
			*numbers.Burst, numbers.Rate)
	}
	if remedy := wholeRemedy(numbers.Rate.Rate); remedy != "" {
		problems.add(tier, "rate", "rate %v: want a whole number in a %v of the calendar", numbers.Rate, numbers.Rate.calendar)
	}
	if tier == "" && l.Aligned {
		problems.add("", "aligned", "aligned: a %v of the calendar begins with its first day: leave it out", numbers.Rate.calendar)
	}
	zone, err := ParseZone(l.Zone)
	if err != nil && tier == "" {
		problems.add("", "zone", "%v", err)
	}
	if len(*problems) > before || err != nil {
		return engine.Policy{}
	}
	return engine.CalendarWindow(uint64(numbers.Rate.Tokens), numbers.Rate.calendar, zone)
}

// ParseZone returns the time zone with a name of the tz database, such as Europe/Berlin; "" means UTC. "Local" is an
// error, because it would mean different periods on different machines.
func ParseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("zone %q: want a name of the tz database, such as UTC or Europe/Berlin", name)
	}
	return zone, nil
}
