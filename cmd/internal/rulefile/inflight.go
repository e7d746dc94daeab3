package rulefile

import (
	"fmt"

	"github.com/weir-go/weir/engine"
)

// If a rule of the file has a rate and a concurrency, the concurrency becomes a separate rule, whose name ends in
// inFlightName.
const inFlightName = ".concurrency"

// IsInFlight reports whether the rule limits requests in flight.
func (r *Rule) IsInFlight() bool { return r.Policy.Algorithm() == engine.AlgorithmConcurrency }

// checkInFlight refuses a concurrency if weir cannot know when a request has ended, and keys that do not fit it.
func (d *decoder) checkInFlight(f *File) {
	if d.concurrent != nil && f.Decide != nil {
		d.Fail(d.concurrent, "concurrency: a proxy that asks at decide does not report when a request is over: "+
			"leave out decide, or limit the requests in the proxy")
	}
}

func describePolicy(p engine.Policy) string {
	if p.Algorithm() == engine.AlgorithmConcurrency {
		return fmt.Sprintf("%d at a time", p.Limit())
	}
	return p.String()
}
