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
	period     engine.Period
	zone       *time.Location
	boundaries *atomicbucket.Calendar
	policies   sync.Map // engine.Policy by its limit, a uint64; making a Policy takes milliseconds
}

var calendars sync.Map

// periods has the units that can follow a calendar.
var periods = map[Unit]engine.Period{
	ratelimitv3.RateLimitResponse_RateLimit_DAY:   engine.Day,
	ratelimitv3.RateLimitResponse_RateLimit_WEEK:  engine.Week,
	ratelimitv3.RateLimitResponse_RateLimit_MONTH: engine.Month,
}

// calendarOf returns the calendar of a unit in a time zone. The error says what is wrong with the unit or the zone.
func calendarOf(unit Unit, zoneName string) (*Calendar, error) {
	period, ok := periods[unit]
	if !ok {
		return nil, fmt.Errorf("zone '%s': want it with a unit of day, week or month, which begin with a date", zoneName)
	}
	zone, err := spec.ParseZone(zoneName)
	if err != nil || zoneName == "" {
		return nil, fmt.Errorf("zone '%s': want a name of the tz database, such as UTC or Europe/Berlin", zoneName)
	}
	boundaries, err := atomicbucket.NewCalendar(period, zone)
	if err != nil {
		return nil, err
	}
	calendar, _ := calendars.LoadOrStore(boundaries, &Calendar{period: period, zone: zone, boundaries: boundaries})
	return calendar.(*Calendar), nil
}

// Policy returns the policy of limit tokens in a period.
func (c *Calendar) Policy(limit uint64) engine.Policy {
	if cached, ok := c.policies.Load(limit); ok {
		return cached.(engine.Policy)
	}
	policy := engine.CalendarWindow(limit, c.period, c.zone)
	c.policies.Store(limit, policy)
	return policy
}

// String returns the period and its zone: "month of Europe/Berlin".
func (c *Calendar) String() string { return fmt.Sprintf("%v of %v", c.period, c.zone) }

// UntilNext returns how long the window that contains now still lasts.
func (l Limit) UntilNext(now time.Time) time.Duration {
	if l.Calendar != nil {
		return l.Calendar.boundaries.Wait(now.UnixNano(), 1)
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
