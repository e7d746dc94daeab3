package serve

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRatesThatAreNotCounted: a rate of 0 refuses all requests forever. An unlimited rate is not mentioned in answers.
// With both rates, no key has a record.
func TestRatesThatAreNotCounted(t *testing.T) {
	s := start(t, `
rules:
  - {name: closed, rate: 0, match: {path: /closed}}
  - {name: open, rate: unlimited, match: {path: /open}}
  - name: plans
    rate: 1/h
    match: {path: /plans}
    key: header:X-Key
    tiers: {header: X-Plan, values: {none: {rate: 0}, two: {burst: 2}, all: {rate: unlimited}}}
  - name: members
    rate: 0
    match: {path: /members}
    tiers: {header: X-Plan, values: {gold: {rate: 2/h}, staff: {rate: unlimited}}}
`)
	for range 3 {
		a, h := s.ask("/closed")
		assert.Equal(t, 429, a.status)
		assert.Empty(t, a.retryAfter)
		assert.Equal(t, `"closed";r=0;t=0`, h.Get("RateLimit"))
		a, h = s.ask("/open")
		assert.Equal(t, 200, a.status)
		assert.Empty(t, h.Values("RateLimit"))
	}
	ask := func(path, plan string) (status int) {
		req, err := http.NewRequest(http.MethodGet, s.URL()+path, nil)
		assert.NoError(t, err)
		req.Header.Set("X-Plan", plan)
		req.Header.Set("X-Key", plan)
		resp, err := s.client.Do(req)
		assert.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, c := range []struct {
		path, plan string
		want       []int
	}{
		{"/plans", "", []int{200, 429}}, {"/plans", "none", []int{429, 429}}, {"/plans", "two", []int{200, 200, 429}},
		{"/plans", "all", []int{200, 200, 200, 200}},
		{"/members", "", []int{429}}, {"/members", "gold", []int{200, 200, 429}},
		{"/members", "staff", []int{200, 200, 200, 200}},
	} {
		for i, want := range c.want {
			assert.Equal(t, want, ask(c.path, c.plan), "%s %s %d", c.path, c.plan, i)
		}
	}
	keys := map[string]uint64{"closed": 0, "open": 0, "plans": 2, "members": 1}
	for name, l := range s.current.Load().limiters {
		l.Limiter.Sweep()
		assert.EqualValues(t, keys[name], l.Limiter.Stats().Keys, name)
	}
}

// TestARuleThatWaits: each request waits longer for its tokens than the previous request. A request that would wait
// longer than max_wait is refused.
func TestARuleThatWaits(t *testing.T) {
	s := start(t, "rules: [{name: slow, rate: 100/s, burst: 1, max_wait: 30ms}]")
	assert.Equal(t, "200 200 200 200 429", s.statuses(5))
	s, ask := startDecide(t, "rules: [{name: slow, rate: 100/s, burst: 1, max_wait: 30ms}]")
	var statuses []int
	for range 5 {
		statuses = append(statuses, ask("/decide", append([]string{"X-Forwarded-For: 203.0.113.1"}, traefik...)...).StatusCode)
	}
	assert.Equal(t, []int{200, 200, 200, 200, 429}, statuses)
	s.stop()
}

// TestFewRequestsWaitForRules: a rule file can bound how many requests wait at the same time.
func TestFewRequestsWaitForRules(t *testing.T) {
	s := start(t, "rules: [{name: slow, rate: 1/s, burst: 1, max_wait: 1m}]\nserver: {max_waiting: 1}")
	require.Equal(t, "200", s.statuses(1))
	statuses := make(chan int, 2)
	for range 2 {
		go func() { statuses <- s.get("/").status }()
	}
	assert.ElementsMatch(t, []int{200, 429}, []int{<-statuses, <-statuses})
}

// TestTheExampleOfWhoIsLimited runs the example of docs/configuration.md.
func TestTheExampleOfWhoIsLimited(t *testing.T) {
	s := start(t, "trusted_proxies: 127.0.0.1\n"+example(t, "configuration.md", "yaml", "name: office"))
	passed := func(n int, path string, header ...string) (passed int) {
		for range n {
			if s.get(path, header...).status == 200 {
				passed++
			}
		}
		return passed
	}
	const office, monitor, outside = "X-Forwarded-For: 10.1.2.3", "X-Forwarded-For: 10.0.0.9", "X-Forwarded-For: 192.0.2.1"
	assert.Equal(t, 10, passed(20, "/", office))
	assert.Equal(t, 20, passed(20, "/healthz", office))
	assert.Equal(t, 20, passed(20, "/", monitor))
	assert.Equal(t, 20, passed(20, "/", outside))
	assert.Equal(t, 100, passed(100, "/?format=csv", outside))
	assert.Equal(t, "1", s.get("/?format=csv", outside).retryAfter, "it would wait 600 ms")
	assert.Equal(t, 0, passed(2, "/old/x", outside))
	assert.Empty(t, s.get("/old/x", outside).retryAfter, "never")
	assert.Equal(t, 1, passed(3, "/", outside, "X-API-Key: a"))
	assert.Equal(t, 0, passed(3, "/", outside, "X-API-Key: b", "X-Plan: suspended"))
	assert.Equal(t, 9, passed(9, "/", outside, "X-API-Key: c", "X-Plan: paid"))
}
