package envoy

import (
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weir-go/weir/engine"
)

// values returns the three headers of a status. The zero Headers give none.
func (h Headers) values(s *rlsv3.RateLimitResponse_DescriptorStatus) []*corev3.HeaderValue {
	if h == (Headers{}) {
		return nil
	}
	return []*corev3.HeaderValue{
		{Key: h.Limit, Value: strconv.FormatUint(uint64(s.GetCurrentLimit().GetRequestsPerUnit()), 10)},
		{Key: h.Remaining, Value: strconv.FormatUint(uint64(s.GetLimitRemaining()), 10)},
		{Key: h.Reset, Value: strconv.FormatInt(s.GetDurationUntilReset().GetSeconds(), 10)},
	}
}

// maxListed bounds the limits that allHeaders lists, so that clients and proxies accept the size of the headers.
const maxListed = 64

// allHeaders returns two headers of draft-ietf-httpapi-ratelimit-headers, versions 8 to 10. One says what each limit
// admits, the other what is left. They list each limit that applies and is not in shadow mode, in the order of the
// request.
func allHeaders(checks []check) []*corev3.HeaderValue {
	var policies, states []string
	for i := range checks {
		c := &checks[i]
		if !c.isCounted() || c.isShadow() || len(states) == maxListed {
			continue
		}
		name := c.headerName()
		policies = append(policies, name+";q="+strconv.FormatUint(c.capacity(), 10)+";w="+strconv.FormatInt(ceilSeconds(c.refillTime()), 10))
		states = append(states, name+";r="+strconv.FormatUint(c.remainingHits(), 10)+";t="+strconv.FormatInt(ceilSeconds(c.reset), 10))
	}
	if len(states) == 0 {
		return nil
	}
	return []*corev3.HeaderValue{
		{Key: "RateLimit-Policy", Value: strings.Join(policies, ", ")}, {Key: "RateLimit", Value: strings.Join(states, ", ")},
	}
}

// refillTime returns how long a used-up limit takes until it is completely available.
func (c *check) refillTime() time.Duration {
	if c.limit.Algorithm == engine.AlgorithmTokenBucket && c.limit.Requests > 0 {
		return c.limit.Policy().Window()
	}
	return c.limit.Window
}

// headerName returns the name of a limit as a string of structured fields (RFC 9651). A limit without a name has the
// name of its rule in statistics.
func (c *check) headerName() string {
	name := "request" // the name if the request carries the limit
	if c.rule != nil {
		if name = c.rule.Name; name == "" {
			name = c.rule.Stat
		}
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range name {
		switch {
		case c < ' ' || c > '~':
			c = '_'
		case c == '"' || c == '\\':
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	b.WriteByte('"')
	return b.String()
}
