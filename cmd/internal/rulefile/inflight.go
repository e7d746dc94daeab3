package rulefile

import (
	"fmt"

	"github.com/weir-go/weir/engine"
)

// If a rule of the file has a rate and a concurrency, the concurrency becomes a separate rule. inFlightName is the end
// of the name of this separate rule.
const inFlightName = ".concurrency"

// IsInFlight reports whether the rule limits requests in flight.
func (r *Rule) IsInFlight() bool { return r.Policy.Algorithm() == engine.AlgorithmConcurrency }

// checkInFlight refuses a concurrency if weir cannot know when a request has ended, and refuses keys of the file that
// do not fit a concurrency.
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
