package rulefile

import (
	"fmt"

	"github.com/weir-go/weir/engine"
)

// In the rule file, a rule can have a rate and a concurrency. The concurrency then becomes a separate rule, and
// inFlightName is the end of its name.
const inFlightName = ".concurrency"

// IsInFlight reports whether the rule limits the number of requests in flight.
func (r *Rule) IsInFlight() bool { return r.Policy.Algorithm() == engine.AlgorithmConcurrency }

// checkInFlight refuses a concurrency together with decide, because weir cannot know when such a request has ended.
func (d *decoder) checkInFlight(f *File) {
	if d.concurrencyNode != nil && f.Decide != nil {
		d.Fail(d.concurrencyNode, "concurrency: a proxy that asks at decide does not report when a request is over: "+
			"leave out decide, or limit the requests in the proxy")
	}
}

func describePolicy(p engine.Policy) string {
	if p.Algorithm() == engine.AlgorithmConcurrency {
		return fmt.Sprintf("%d at a time", p.Limit())
	}
	return p.String()
}
