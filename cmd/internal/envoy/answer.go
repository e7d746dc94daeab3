package envoy

import (
	"math"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/engine"
)

func currentLimit(l config.Limit, name string) *rlsv3.RateLimitResponse_RateLimit {
	current := &rlsv3.RateLimitResponse_RateLimit{Name: name, RequestsPerUnit: l.Requests, Unit: l.Unit}
	if field := l.EncodedMultiplier(); field != nil {
		current.ProtoReflect().SetUnknown(field)
	}
	return current
}

func (s *Service) answer(request *rlsv3.RateLimitRequest, checks []check) *rlsv3.RateLimitResponse {
	n := len(request.GetDescriptors())
	response := &rlsv3.RateLimitResponse{Statuses: make([]*rlsv3.RateLimitResponse_DescriptorStatus, n)}
	statuses := make([]statusMemory, n)
	for i := 0; i < len(checks); {
		tightest := i
		for i++; i < len(checks) && checks[i].index == checks[tightest].index; i++ {
			if checks[i].isTighter(&checks[tightest]) {
				tightest = i
			}
		}
		c := &checks[tightest]
		response.Statuses[c.index] = c.status(&statuses[c.index])
	}
	groups := s.newQuotaGroups(request, checks)
	response.OverallCode = s.overallCode(checks, groups)
	if nearest := s.nearest(checks); nearest >= 0 {
		nearestStatus := checks[nearest].status(new(statusMemory))
		response.ResponseHeadersToAdd = s.options.ResponseHeaders.values(nearestStatus)
		response.RequestHeadersToAdd = s.options.RequestHeaders.values(nearestStatus)
	}
	if s.options.AllHeaders {
		response.ResponseHeadersToAdd = append(response.ResponseHeadersToAdd, allHeaders(checks)...)
	}
	if s.options.DynamicMetadata {
		response.DynamicMetadata = metadata(request, checks, groups)
	}
	return response
}

func (s *Service) overallCode(checks []check, groups *quotaGroups) rlsv3.RateLimitResponse_Code {
	switch {
	case !groups.allOver() && !s.anyRefused(checks):
		return rlsv3.RateLimitResponse_OK
	case s.options.ShadowMode:
		s.stats.GlobalShadowMode.Add(1)
		return rlsv3.RateLimitResponse_OK
	}
	return rlsv3.RateLimitResponse_OVER_LIMIT
}

// isTighter reports whether a, not b, determines the status of their descriptor. The order is:
//   - limits that apply before limits that do not apply
//   - limits that refuse before limits that admit
//   - of two that refuse, the longer refusal first
//   - of two that admit, a number of hits before unlimited, and then the fewer hits left first
func (c *check) isTighter(b *check) bool {
	switch {
	case c.applies != b.applies:
		return c.applies
	case c.isRefused() != b.isRefused():
		return c.isRefused()
	case c.isRefused():
		return c.refusal() > b.refusal()
	case c.limit.Unlimited != b.limit.Unlimited:
		return b.limit.Unlimited
	}
	return c.remainingHits() < b.remainingHits()
}

// refusal returns for how long a check refuses. If nothing is taken, the hits are above the limit, and can never pass.
func (c *check) refusal() time.Duration {
	if c.reset == 0 {
		return engine.Never
	}
	return c.reset
}

// A statusMemory is the memory of a status and of everything that it points to, in one allocation.
type statusMemory struct {
	status rlsv3.RateLimitResponse_DescriptorStatus
	reset  durationpb.Duration
}

func (c *check) status(memory *statusMemory) *rlsv3.RateLimitResponse_DescriptorStatus {
	status := &memory.status
	status.Code = rlsv3.RateLimitResponse_OK
	switch {
	case !c.applies:
	case c.limit.Unlimited:
		status.LimitRemaining = math.MaxUint32
	default:
		if c.isRefused() {
			status.Code = rlsv3.RateLimitResponse_OVER_LIMIT
		}
		status.CurrentLimit = c.currentLimit
		status.LimitRemaining = uint32(min(c.remainingHits(), math.MaxUint32))
		memory.reset.Seconds = ceilSeconds(c.reset)
		status.DurationUntilReset = &memory.reset
	}
	return status
}

// remainingHits returns how many hits remain. As in envoyproxy/ratelimit, the result is 0 over the limit, even if fewer
// hits would pass.
func (c *check) remainingHits() uint64 {
	if c.isOver {
		return 0
	}
	return c.remaining
}

// isRefused reports whether the status is a refusal. A rule in shadow mode does not refuse.
func (c *check) isRefused() bool { return c.isOver && !c.isShadow() }

func (c *check) isShadow() bool { return c.rule != nil && c.rule.ShadowMode }

// isQuotaMode reports whether the check is in quota mode. In this mode, a request is refused only if all its checks in
// quota mode are over the limit.
func (s *Service) isQuotaMode(c *check) bool {
	return s.options.QuotaMode || c.rule != nil && c.rule.QuotaMode
}

func (s *Service) anyRefused(checks []check) bool {
	for i := range checks {
		if checks[i].isRefused() && !s.isQuotaMode(&checks[i]) {
			return true
		}
	}
	return false
}

// nearest returns the index of the check that the headers report: the last check that refuses. If no check refuses, it
// is the first check with the fewest hits left. The result is -1 if no header is wanted or no limit applies.
func (s *Service) nearest(checks []check) int {
	if s.options.ResponseHeaders == (Headers{}) && s.options.RequestHeaders == (Headers{}) {
		return -1
	}
	nearest, minRemaining := -1, uint64(math.MaxUint32)
	for i := range checks {
		c := &checks[i]
		if !c.applies || c.limit.Unlimited {
			continue
		}
		if c.isRefused() && !s.isQuotaMode(c) {
			nearest, minRemaining = i, 0
		} else if remaining := c.remainingHits(); remaining < minRemaining {
			nearest, minRemaining = i, remaining
		}
	}
	return nearest
}

// ceilSeconds rounds up to seconds, as envoyproxy/ratelimit does.
func ceilSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}
