package rulefile

import (
	"fmt"

	"github.com/weir-go/weir/engine"
)

// inFlightName is what the name of a rule with a rate and a concurrency gets for the latter: that is a rule of its own.
const inFlightName = ".concurrency"

// IsInFlight reports whether the rule limits requests in flight.
func (r *Rule) IsInFlight() bool { return r.Policy.Algorithm() == engine.AlgorithmConcurrency }

// checkInFlight refuses a concurrency where weir cannot know when a request is over, and what is no use to it.
func (d *decoder) checkInFlight(f *File) {
	if d.concurrent != nil && f.Decide != nil {
		d.Fail(d.concurrent, "concurrency: a proxy that asks at decide does not report when a request is over: "+
			"leave out decide, or limit the requests in the proxy")
	}
}

// describePolicy is a policy as a text for people.
func describePolicy(p engine.Policy) string {
	if p.Algorithm() == engine.AlgorithmConcurrency {
		return fmt.Sprintf("%d at a time", p.Limit())
	}
	return p.String()
}
