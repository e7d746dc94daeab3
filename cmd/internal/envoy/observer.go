package envoy

import (
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weir-go/weir/engine"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/limits"
)

// An Observer receives the decisions of a Service, in the goroutine of the request. Its methods are called
// concurrently. They must not block, and must not keep or change their arguments.
type Observer interface {
	// Decided is called for each limit of a descriptor that asks for hits, except for unlimited limits.
	Decided(d Decision)
	// Answered is called for each request after the calls of Decided. response is nil if err is not nil.
	Answered(response *rlsv3.RateLimitResponse, err error)
}

// A Decision is the decision of a limit about a descriptor.
type Decision struct {
	Rule       *config.Rule // nil for a limit that the request carries
	Domain     string
	Descriptor *commonv3.RateLimitDescriptor
	// Outcome is Allowed, Refused or ShadowRefused. It is Refunded if hits are given back, and BackendFailed if the
	// store did not answer.
	Outcome limits.Outcome
	// Key is the key of the counter. It is zero if counters are in a store.
	Key engine.Key
	// Limit is the value's own limit if that limit refused the hits. Otherwise it is the zero Policy.
	Limit engine.Policy
}

// observe passes the decisions of all checks to the observer. storeFailed says whether a store failed to answer.
func (s *Service) observe(request *rlsv3.RateLimitRequest, checks []check, storeFailed bool) {
	if s.options.Observer == nil {
		return
	}
	for i := range checks {
		c := &checks[i]
		if !c.isCounted() || c.hits == 0 {
			continue
		}
		d := Decision{
			Domain: request.GetDomain(), Descriptor: request.GetDescriptors()[c.index], Key: c.counter.hash,
			Outcome: c.outcome(s.options.ShadowMode),
		}
		if storeFailed {
			d.Outcome = limits.Failed
		}
		if c.rule != nil {
			if d.Rule = c.rule.Rule; c.isOver {
				d.Limit, _ = c.rule.valueLimit(d.Descriptor)
			}
		}
		s.options.Observer.Decided(d)
	}
}

func (c *check) outcome(allShadow bool) limits.Outcome {
	switch {
	case c.isRefund:
		return limits.Refunded
	case !c.isOver:
		return limits.Allowed
	case allShadow || c.isShadow():
		return limits.ShadowRefused
	}
	return limits.Refused
}
