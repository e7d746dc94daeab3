package serve

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSevenQuickRequests(t *testing.T) {
	s := start(t, "rules: [{name: default, rate: 1/s, burst: 5}]")
	assert.Equal(t, "200 200 200 200 200 429 429", s.statuses(7))
	a, h := s.ask("/")
	assert.Equal(t, 429, a.status)
	assert.Equal(t, "1", a.retryAfter)
	assert.Equal(t, "application/problem+json", a.mediaType)
	assert.Contains(t, a.body, `"violated-policies":["default"]`)
	assert.Equal(t, `"default";r=0;t=1`, h.Get("RateLimit"))

	s.clock.advance(999 * time.Millisecond)
	assert.Equal(t, "429", s.statuses(1), "a millisecond early")
	s.clock.advance(time.Millisecond)
	assert.Equal(t, "200 429", s.statuses(2), "one token came back")
	s.stop()
	assert.Contains(t, s.log.String(), "msg=stopped requests=11 allowed=6 refused=5 upstream_failures=0\n")
}

func TestEchoShowsWhatWasLimited(t *testing.T) {
	s := start(t, one)
	assert.Equal(t, answer{200, "", "text/plain; charset=utf-8",
		"admitted by weir\n\nmethod  GET\nhost    " + s.address() + "\npath    /a/b?c=d\nclient  127.0.0.1\n\n" +
			`Ratelimit-Policy: "default";q=5;w=18000` + "\n" + `Ratelimit: "default";r=4;t=3600` + "\n",
	}, s.get("/a/b?c=d"))
}

func TestTheAnswerIsAsTheFileSays(t *testing.T) {
	s := start(t, "headers: both\nresponse: {body: json}\n"+one)
	s.statuses(5)
	a, h := s.ask("/")
	assert.Equal(t, answer{429, "3600", "application/json", `{"error":"Too many requests","retryAfter":3600}` + "\n"}, a)
	assert.Equal(t, "5", h.Get("X-RateLimit-Limit"))
	assert.NotEmpty(t, h.Get("RateLimit-Policy"))
	assert.Equal(t, fmt.Sprint(s.clock.now().Add(time.Hour).Unix()), h.Get("X-RateLimit-Reset"))
}

// TestEveryAlgorithmOverHTTP sends requests to a rule of each algorithm. It does so at chosen seconds after a full
// minute.
func TestEveryAlgorithmOverHTTP(t *testing.T) {
	type moment struct {
		second     time.Duration
		passed     int    // number that pass before the first refusal
		retryAfter string // Retry-After of the first refusal
	}
	for _, c := range []struct {
		algorithm string
		want      []moment
	}{
		{"token-bucket, burst: 3", []moment{{15, 3, "20"}, {34, 0, "1"}, {35, 1, "20"}, {95, 3, "20"}}},
		{"batch-refill", []moment{{15, 3, "45"}, {59, 0, "1"}, {60, 3, "60"}, {200, 3, "40"}}},
		{"fixed-window", []moment{{15, 3, "60"}, {74, 0, "1"}, {75, 3, "60"}, {200, 3, "60"}}},
		{"fixed-window, aligned: true", []moment{{15, 3, "45"}, {59, 0, "1"}, {60, 3, "60"}, {200, 3, "40"}}},
		// At second 60, all three requests of the previous minute still count. At second 61, the weighted number is
		// below three, and is rounded down to two.
		{"sliding-window", []moment{{15, 3, "46"}, {60, 0, "1"}, {61, 1, "20"}, {81, 1, "20"}, {300, 3, "61"}}},
		{"sliding-log", []moment{{15, 3, "60"}, {74, 0, "1"}, {75, 3, "60"}, {200, 3, "60"}}},
	} {
		t.Run(c.algorithm, func(t *testing.T) {
			s := start(t, "rules: [{name: a, rate: 3/m, max_keys: 100, algorithm: "+c.algorithm+"}]")
			begin := s.clock.now()
			for _, m := range c.want {
				s.clock.advance(begin.Add(m.second * time.Second).Sub(s.clock.now()))
				for i := range m.passed {
					assert.Equal(t, "200", s.statuses(1), "second %d, request %d", m.second, i+1)
				}
				got := s.get("/")
				assert.Equal(t, 429, got.status)
				assert.Equal(t, m.retryAfter, got.retryAfter, "second %d", m.second)
			}
		})
	}
}

func TestHeaderKeysHaveTheirOwnBuckets(t *testing.T) {
	s := start(t, "rules: [{name: a, rate: 1/h, burst: 2, key: \"header:x-api-key\"}]")
	spent := "200 200 429"
	assert.Equal(t, spent, s.statuses(3, "X-Api-Key: alice"))
	assert.Equal(t, spent, s.statuses(3, "X-API-KEY: bob"))
	// Without the header, the key of a client is its address. This key differs from that of every header value.
	assert.Equal(t, spent, s.statuses(3, "X-Api-Key: 127.0.0.1"))
	assert.Equal(t, spent, s.statuses(3, "X-Api-Key: "), "an empty header is none")
	assert.Equal(t, "429", s.statuses(1), "no header: the address")
}

func TestAForwardedHeaderBuysNothing(t *testing.T) {
	s := start(t, one)
	s.statuses(5)
	for _, h := range []string{"X-Forwarded-For: 203.0.113.1", "Forwarded: for=203.0.113.1", "X-Real-IP: 203.0.113.1"} {
		assert.Equal(t, "429", s.statuses(1, h), h)
	}
}

func TestBehindALoadBalancerTheSocketsAddressIsTheProxys(t *testing.T) {
	for from, header := range map[string]string{
		"x-forwarded-for": "X-Forwarded-For: 198.51.100.9, %s", "forwarded": "Forwarded: for=198.51.100.9, for=%s",
		"header:X-Real-IP": "X-Real-IP: %s",
	} {
		s := start(t, "trusted_proxies: 127.0.0.0/8\nclient_ip: {from: \""+from+"\"}\n"+
			"rules: [{name: a, rate: 1/h, burst: 1}]")
		assert.Equal(t, "200 429", s.statuses(2, fmt.Sprintf(header, "203.0.113.1")), from)
		assert.Equal(t, "200 429", s.statuses(2, fmt.Sprintf(header, "203.0.113.2")), "another client, %s", from)
		s.stop()
	}
}

func TestAPathWrittenInAnotherWayIsTheSameBucket(t *testing.T) {
	s := start(t, "rules: [{name: a, rate: 1/h, burst: 1, key: path, match: {path: [/login, \"/login/{$}\"]}}]")
	assert.Equal(t, 200, s.get("/login").status)
	for _, path := range []string{"/login", "//login", "/%6cogin", "/./login", "/login/", "/login?x=1"} {
		assert.Equal(t, 429, s.get(path).status, path)
	}
	assert.Equal(t, 200, s.get("/loginx").status, "no rule matches")
}

func TestSeveralRulesAreAllOrNothing(t *testing.T) {
	s := start(t, `rules:
  - {name: narrow, rate: 1/h, burst: 1, match: {path: /narrow}}
  - {name: wide, rate: 1/h, burst: 3, key: global}`)
	assert.Equal(t, 200, s.get("/narrow").status)
	for range 5 {
		assert.Equal(t, 429, s.get("/narrow").status)
	}
	a, h := s.ask("/")
	assert.Equal(t, 200, a.status)
	assert.Equal(t, `"wide";r=1;t=3600`, h.Get("RateLimit"), "what narrow refused took nothing from wide")
	assert.Equal(t, "200 429", s.statuses(2))
}

func TestTiersCostsShadowAndHosts(t *testing.T) {
	s := start(t, `rules:
  - {name: plans, rate: 1/h, burst: 1, key: host, match: {host: "*.example.com"},
     tiers: {header: X-Plan, values: {paid: {burst: 3}}}}
  - {name: costly, rate: 1/h, burst: 10, match: {path: /search}, cost: {header: X-Cost, max: 4}}
  - {name: tried, rate: 1/h, burst: 1, shadow: true, match: {path: /tried}}`)
	assert.Equal(t, "200 429", s.statuses(2, "Host: a.example.com"))
	assert.Equal(t, "429", s.statuses(1, "Host: A.example.com:80"))
	assert.Equal(t, "200 200 200 429", s.statuses(4, "Host: b.example.com", "X-Plan: paid"))
	for cost, left := range map[string]int{"4": 6, "99": 6, "x": 9, "": 9} {
		_, h := s.ask("/search", "X-Cost: "+cost)
		assert.Contains(t, h.Get("RateLimit"), fmt.Sprintf(`"costly";r=%d;`, left), cost)
		s.clock.advance(10 * time.Hour)
	}
	for range 3 {
		assert.Equal(t, 200, s.get("/tried").status)
	}
}
