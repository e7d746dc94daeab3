package spec

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// calendar returns the policy for the numbers n, whose rate is per day, week or month of the calendar.
func (l *Limit) calendar(es *Errors, tier string, n Numbers) engine.Policy {
	before := len(*es)
	if l.Algorithm != engine.AlgorithmFixedWindow {
		es.add(tier, "rate", "rate %v: a %v of the calendar needs the algorithm %s: use it, or write the rate of a %s in d or h",
			n.Rate, n.Rate.per, Name(engine.AlgorithmFixedWindow), Name(l.Algorithm))
	}
	if n.Burst != nil {
		es.add(tier, "burst", "burst %d: a fixed-window has none, because all of its limit, %v, may come at once: leave it out",
			*n.Burst, n.Rate)
	}
	if remedy := whole(n.Rate.Rate); remedy != "" {
		es.add(tier, "rate", "rate %v: want a whole number in a %v of the calendar", n.Rate, n.Rate.per)
	}
	if tier == "" && l.Aligned {
		es.add("", "aligned", "aligned: a %v of the calendar begins with its first day: leave it out", n.Rate.per)
	}
	zone, err := ParseZone(l.Zone)
	if err != nil && tier == "" {
		es.add("", "zone", "%v", err)
	}
	if len(*es) > before || err != nil {
		return engine.Policy{}
	}
	return engine.CalendarWindow(uint64(n.Rate.Tokens), n.Rate.per, zone)
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
