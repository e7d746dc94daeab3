package envoy

import (
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// of returns the three headers of a status, none for the zero Headers.
func (h Headers) of(s *rlsv3.RateLimitResponse_DescriptorStatus) []*corev3.HeaderValue {
	if h == (Headers{}) {
		return nil
	}
	return []*corev3.HeaderValue{
		{Key: h.Limit, Value: strconv.FormatUint(uint64(s.GetCurrentLimit().GetRequestsPerUnit()), 10)},
		{Key: h.Remaining, Value: strconv.FormatUint(uint64(s.GetLimitRemaining()), 10)},
		{Key: h.Reset, Value: strconv.FormatInt(s.GetDurationUntilReset().GetSeconds(), 10)},
	}
}
