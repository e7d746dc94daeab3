package envoy

import (
	"math"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

func currentLimit(l config.Limit, name string) *rlsv3.RateLimitResponse_RateLimit {
	current := &rlsv3.RateLimitResponse_RateLimit{Name: name, RequestsPerUnit: l.Requests, Unit: l.Unit}
	if told := l.Told(); told != nil {
		current.ProtoReflect().SetUnknown(told)
	}
	return current
}

func (s *Service) answer(request *rlsv3.RateLimitRequest, asks []ask) *rlsv3.RateLimitResponse {
	n := len(request.GetDescriptors())
	response := &rlsv3.RateLimitResponse{Statuses: make([]*rlsv3.RateLimitResponse_DescriptorStatus, n)}
	statuses := make([]wholeStatus, n)
	for i := 0; i < len(asks); {
		tightest := i
		for i++; i < len(asks) && asks[i].of == asks[tightest].of; i++ {
			if asks[i].isTighter(&asks[tightest]) {
				tightest = i
			}
		}
		a := &asks[tightest]
		response.Statuses[a.of] = a.status(&statuses[a.of])
	}
	groups := s.quotaGroups(request, asks)
	response.OverallCode = s.overall(asks, groups)
	if nearest := s.nearest(asks); nearest >= 0 {
		near := asks[nearest].status(new(wholeStatus))
		response.ResponseHeadersToAdd = s.options.ResponseHeaders.of(near)
		response.RequestHeadersToAdd = s.options.RequestHeaders.of(near)
	}
	if s.options.AllHeaders {
		response.ResponseHeadersToAdd = append(response.ResponseHeadersToAdd, allHeaders(asks)...)
	}
	if s.options.DynamicMetadata {
		response.DynamicMetadata = metadata(request, asks, groups)
	}
	return response
}

func (s *Service) overall(asks []ask, groups *quotaGroups) rlsv3.RateLimitResponse_Code {
	switch {
	case !groups.allOver() && !s.anyOver(asks):
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
//   - of two that refuse, the longer refusal first; of two that admit, the fewer hits left first
func (a *ask) isTighter(b *ask) bool {
	switch {
	case a.applies != b.applies:
		return a.applies
	case a.refused() != b.refused():
		return a.refused()
	case a.refused():
		return a.reset > b.reset
	}
	return a.left() < b.left()
}

// A wholeStatus is a status with everything that it points to, in one allocation.
type wholeStatus struct {
	status rlsv3.RateLimitResponse_DescriptorStatus
	reset  durationpb.Duration
}

func (a *ask) status(in *wholeStatus) *rlsv3.RateLimitResponse_DescriptorStatus {
	to := &in.status
	to.Code = rlsv3.RateLimitResponse_OK
	switch {
	case !a.applies:
	case a.limit.Unlimited:
		to.LimitRemaining = math.MaxUint32
	default:
		if a.refused() {
			to.Code = rlsv3.RateLimitResponse_OVER_LIMIT
		}
		to.CurrentLimit = a.current
		to.LimitRemaining = uint32(min(a.left(), math.MaxUint32))
		in.reset.Seconds = wholeSeconds(a.reset)
		to.DurationUntilReset = &in.reset
	}
	return to
}

// The method left returns how many hits remain. As in envoyproxy/ratelimit, it is 0 over the limit, even if fewer hits
// would pass.
func (a *ask) left() uint64 {
	if a.over {
		return 0
	}
	return a.remaining
}

// refused reports whether the status is a refusal. A rule in shadow mode does not refuse.
func (a *ask) refused() bool { return a.over && !a.shadow() }

func (a *ask) shadow() bool { return a.rule != nil && a.rule.ShadowMode }

// quota reports whether the ask is in quota mode. In this mode, a request is refused only if all its asks in quota mode
// are over the limit.
func (s *Service) quota(a *ask) bool { return s.options.QuotaMode || a.rule != nil && a.rule.QuotaMode }

func (s *Service) anyOver(asks []ask) bool {
	for i := range asks {
		if asks[i].refused() && !s.quota(&asks[i]) {
			return true
		}
	}
	return false
}

// nearest returns the index of the ask that the headers report: the last ask that refuses. If no ask refuses, it is the
// first ask with the fewest hits left. The result is -1 if no header is wanted or no limit applies.
func (s *Service) nearest(asks []ask) int {
	if s.options.ResponseHeaders == (Headers{}) && s.options.RequestHeaders == (Headers{}) {
		return -1
	}
	nearest, least := -1, uint64(math.MaxUint32)
	for i := range asks {
		a := &asks[i]
		if !a.applies || a.limit.Unlimited {
			continue
		}
		if a.refused() && !s.quota(a) {
			nearest, least = i, 0
		} else if left := a.left(); left < least {
			nearest, least = i, left
		}
	}
	return nearest
}

// wholeSeconds rounds up to seconds, as envoyproxy/ratelimit does.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}
