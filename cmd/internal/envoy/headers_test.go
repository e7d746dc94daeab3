package envoy

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/stretchr/testify/assert"
)

// TestHeaders: headers describe the last descriptor that refuses. If none refuses, they describe the descriptor with
// the fewest hits left.
func TestHeaders(t *testing.T) {
	s, _ := newService(t, rules, Options{
		ResponseHeaders: Headers{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"},
		RequestHeaders:  Headers{"l", "m", "r"},
	})
	for _, test := range []struct{ asks, want string }{
		{"d: none=a", ""},
		{"d: free=a", ""},
		{"d: five=a", "5 4 40"},
		{"d: five=a | hour=a | free=x", "2 1 1780"},
		{"d: hour=a | five=b", "2 0 1780"},
		{"d: two=a +3 | hour=a | five=b", "2 0 1780"},
		{"d: hour=a | two=a +3 | five=b", "2 0 1"},
	} {
		response := ask1(t, s, test.asks)
		var response1, request1 []string
		for i, h := range response.GetResponseHeadersToAdd() {
			assert.Equal(t, []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}[i], h.GetKey())
			response1 = append(response1, h.GetValue())
			request1 = append(request1, response.GetRequestHeadersToAdd()[i].GetValue())
		}
		assert.Equal(t, test.want, strings.Join(response1, " "), test.asks)
		assert.Equal(t, response1, request1)
	}
}

// TestHeadersOfAllLimits: the headers list the limits that apply, in order, but not more than maxListed. Names may have
// any characters.
func TestHeadersOfAllLimits(t *testing.T) {
	s, _ := newService(t, `
domain: d
descriptors:
  - {key: minute, rate_limit: {unit: minute, requests_per_unit: 5, name: 'the "first"\'}}
  - {key: bucket, rate_limit: {unit: second, requests_per_unit: 10, algorithm: token-bucket, burst: 20}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: müller, rate_limits: [{unit: hour, requests_per_unit: 3}, {period: 90s, requests_per_unit: 2}]}
`, Options{AllHeaders: true, ResponseHeaders: Headers{"L", "R", "S"}})
	answer := ask1(t, s, "d: minute=a | bucket=a +2 | shadow=a | free=a | müller=a +3 | other=a | x=y limit=7/day")
	assert.Equal(t, []*corev3.HeaderValue{
		{Key: "RateLimit-Policy", Value: `"the \"first\"\\";q=5;w=60, "d.bucket";q=20;w=2, "d.m_ller_per_hour";q=3;w=3600, "d.m_ller_per_1m30s";q=2;w=90, "request";q=7;w=86400`},
		{Key: "RateLimit", Value: `"the \"first\"\\";r=4;t=40, "d.bucket";r=18;t=1, "d.m_ller_per_hour";r=0;t=1780, "d.m_ller_per_1m30s";r=0;t=70, "request";r=6;t=48580`},
	}, answer.GetResponseHeadersToAdd()[3:])
	assert.Len(t, ask1(t, s, "d: other=a").GetResponseHeadersToAdd(), 0)
	many := ask1(t, s, "d: "+strings.TrimSuffix(strings.Repeat("minute=a |", 100), "|"))
	assert.Equal(t, maxListed-1, strings.Count(many.GetResponseHeadersToAdd()[4].GetValue(), ","))
}
