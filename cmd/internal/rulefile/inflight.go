package rulefile

import (
	"fmt"

	"github.com/weir-go/weir/engine"
)

// inFlightName ends the name of the rule for a concurrency next to a rate. The concurrency is a rule of its own.
const inFlightName = ".concurrency"

// IsInFlight reports whether the rule limits requests in flight.
func (r *Rule) IsInFlight() bool { return r.Policy.Algorithm() == engine.AlgorithmConcurrency }

// checkInFlight refuses a concurrency if weir cannot know when a request is over, and keys that a concurrency cannot
// use.
func (d *decoder) checkInFlight(f *File) {
	if d.concurrent != nil && f.Decide != nil {
		d.Fail(d.concurrent, "concurrency: a proxy that asks at decide does not report when a request is over: "+
			"leave out decide, or limit the requests in the proxy")
	}
}

// describePolicy returns a policy as text for people.
func describePolicy(p engine.Policy) string {
	if p.Algorithm() == engine.AlgorithmConcurrency {
		return fmt.Sprintf("%d at a time", p.Limit())
	}
	return p.String()
}
