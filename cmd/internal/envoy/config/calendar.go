package config

import (
	"fmt"
	"sync"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// A Calendar makes windows start with a day, week or month of a time zone. Equal periods in the same zone have the same
// pointer.
type Calendar struct {
	per      engine.Period
	zone     *time.Location
	begins   *atomicbucket.Calendar
	policies sync.Map // engine.Policy by its limit, a uint64; making a Policy takes milliseconds
}

var calendars sync.Map

// periods has the units that can follow a calendar.
var periods = map[Unit]engine.Period{
	ratelimitv3.RateLimitResponse_RateLimit_DAY:   engine.Day,
	ratelimitv3.RateLimitResponse_RateLimit_WEEK:  engine.Week,
	ratelimitv3.RateLimitResponse_RateLimit_MONTH: engine.Month,
}

// calendarOf returns the calendar of a unit in a time zone. The error says what is wrong with the unit or the zone.
func calendarOf(unit Unit, name string) (*Calendar, error) {
	per, ok := periods[unit]
	if !ok {
		return nil, fmt.Errorf("zone '%s': want it with a unit of day, week or month, which begin with a date", name)
	}
	zone, err := spec.ParseZone(name)
	if err != nil || name == "" {
		return nil, fmt.Errorf("zone '%s': want a name of the tz database, such as UTC or Europe/Berlin", name)
	}
	begins, err := atomicbucket.NewCalendar(per, zone)
	if err != nil {
		return nil, err
	}
	made, _ := calendars.LoadOrStore(begins, &Calendar{per: per, zone: zone, begins: begins})
	return made.(*Calendar), nil
}

// Policy returns the policy of limit tokens in a period.
func (c *Calendar) Policy(limit uint64) engine.Policy {
	if known, ok := c.policies.Load(limit); ok {
		return known.(engine.Policy)
	}
	made := engine.CalendarWindow(limit, c.per, c.zone)
	c.policies.Store(limit, made)
	return made
}

// String returns the period and its zone: "month of Europe/Berlin".
func (c *Calendar) String() string { return fmt.Sprintf("%v of %v", c.per, c.zone) }

// UntilNext returns how long the window that contains now still lasts.
func (l Limit) UntilNext(now time.Time) time.Duration {
	if l.Calendar != nil {
		return l.Calendar.begins.Wait(now.UnixNano(), 1)
	}
	return l.Window - time.Duration(now.UnixNano()%int64(l.Window))
}

// Length returns the length of a window as text: "1h0m0s", "month of UTC".
func (l Limit) Length() string {
	if l.Calendar != nil {
		return l.Calendar.String()
	}
	return l.Window.String()
}
