package envoy

import (
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weir-go/weir/engine"
)

// The method of returns the three headers of a status. The zero Headers give none.
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

// mostListed bounds the limits that allHeaders lists, so that clients and proxies accept the size of the headers.
const mostListed = 64

// allHeaders returns two headers of draft-ietf-httpapi-ratelimit-headers, versions 8 to 10. One says what each limit
// admits, the other what is left. They list each limit that applies and is not in shadow mode, in the order of the
// request.
func allHeaders(asks []ask) []*corev3.HeaderValue {
	var policies, rest []string
	for i := range asks {
		a := &asks[i]
		if !a.counts() || a.shadow() || len(rest) == mostListed {
			continue
		}
		name := a.headerName()
		policies = append(policies, name+";q="+strconv.FormatUint(a.most(), 10)+";w="+strconv.FormatInt(wholeSeconds(a.comesBackIn()), 10))
		rest = append(rest, name+";r="+strconv.FormatUint(a.left(), 10)+";t="+strconv.FormatInt(wholeSeconds(a.reset), 10))
	}
	if len(rest) == 0 {
		return nil
	}
	return []*corev3.HeaderValue{
		{Key: "RateLimit-Policy", Value: strings.Join(policies, ", ")}, {Key: "RateLimit", Value: strings.Join(rest, ", ")},
	}
}

// comesBackIn returns how long a used-up limit takes until it is completely available.
func (a *ask) comesBackIn() time.Duration {
	if a.limit.Algorithm == engine.AlgorithmTokenBucket && a.limit.Requests > 0 {
		return a.limit.Policy().Window()
	}
	return a.limit.Window
}

// headerName returns the name of a limit as a string of structured fields (RFC 9651). A limit without a name has the
// name of its rule in statistics.
func (a *ask) headerName() string {
	name := "request" // the name if the request carries the limit
	if a.rule != nil {
		if name = a.rule.Name; name == "" {
			name = a.rule.Stat
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
