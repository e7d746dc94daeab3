package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// A Unit is the length of a window, as an enum of the service's messages.
type Unit = ratelimitv3.RateLimitResponse_RateLimit_Unit

const (
	day = 24 * time.Hour

	unknownUnit = ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN
)

// lengths has the lengths of the units. As in envoyproxy/ratelimit, a month has 30 days and a year has 365. Windows
// start at multiples of their length since 1970, so weeks start on a Thursday.
var lengths = [...]time.Duration{
	ratelimitv3.RateLimitResponse_RateLimit_SECOND: time.Second,
	ratelimitv3.RateLimitResponse_RateLimit_MINUTE: time.Minute,
	ratelimitv3.RateLimitResponse_RateLimit_HOUR:   time.Hour,
	ratelimitv3.RateLimitResponse_RateLimit_DAY:    day,
	ratelimitv3.RateLimitResponse_RateLimit_WEEK:   7 * day,
	ratelimitv3.RateLimitResponse_RateLimit_MONTH:  30 * day,
	ratelimitv3.RateLimitResponse_RateLimit_YEAR:   365 * day,
}

// Units is the number of units.
const Units = len(lengths) - 1

// A Limit is the limit of a rule or a request. Equal values are the same limit.
type Limit struct {
	Algorithm  engine.Algorithm // AlgorithmFixedWindow unless the rule has another algorithm
	Requests   uint32           // the number of requests in a window; 0 refuses all
	Burst      uint64           // the burst of a token bucket, else 0
	Window     time.Duration    // the length of a window
	Unit       Unit             // the unit in answers; UNKNOWN if the rule has a period
	Multiplier uint32           // how many units a window has; 1 unless the rule or the request has another number
	Unlimited  bool             // admits all; the other fields are zero
	Calendar   *Calendar        // its periods are the windows; nil: windows start at multiples of their length
	MaxQuota   uint64           // the highest limit of a single value; 0 if no value has one, or for fixed windows
}

func unitOf(name string) (Unit, bool) {
	unit, ok := ratelimitv3.RateLimitResponse_RateLimit_Unit_value[strings.ToUpper(name)]
	return Unit(unit), ok && Unit(unit) != unknownUnit
}

// windowLength returns the length of multiplier units. It returns false for an unknown unit or a window that is too
// long.
func windowLength(unit Unit, multiplier uint32) (time.Duration, bool) {
	if unit <= unknownUnit || int(unit) >= len(lengths) || multiplier == 0 {
		return 0, false
	}
	if int64(multiplier) > int64(spec.MaxWindow/lengths[unit]) {
		return 0, false
	}
	return lengths[unit] * time.Duration(multiplier), true
}

// Policy returns the policy of the limit. Fixed windows are aligned with the clock, as in envoyproxy/ratelimit. It
// allocates only for the first Policy of a [Calendar].
func (l Limit) Policy() engine.Policy {
	if l.Calendar != nil && l.Requests > 0 {
		return l.Calendar.Policy(uint64(l.Requests))
	}
	n := spec.Numbers{Rate: l.rate()}
	if l.Burst != 0 {
		n.Burst = &l.Burst
	}
	return spec.PolicyOf(l.Algorithm, n, l.Algorithm == engine.AlgorithmFixedWindow)
}

func (l Limit) rate() spec.Rate {
	switch {
	case l.Unlimited:
		return spec.Unlimited
	case l.Requests == 0:
		return spec.Blocked
	}
	return spec.Of(engine.Per(float64(l.Requests), l.Window))
}

// IsUnit reports whether the windows have the length of exactly one unit.
func (l Limit) IsUnit() bool {
	return l.Calendar == nil && l.Window > 0 && slices.Contains(lengths[:], l.Window)
}

// Per returns the period as part of a name: second, 2_minutes or, without a unit, 1m30s.
func (l Limit) Per() string {
	unit := strings.ToLower(l.Unit.String())
	switch {
	case l.Unlimited:
		return "unlimited"
	case l.Calendar != nil:
		return strings.NewReplacer(" ", "_", "/", "_").Replace(l.Calendar.String())
	case l.Unit == unknownUnit:
		return strings.ReplaceAll(l.Window.String(), ".", "_")
	case l.Multiplier > 1:
		return fmt.Sprintf("%d_%ss", l.Multiplier, unit)
	}
	return unit
}
