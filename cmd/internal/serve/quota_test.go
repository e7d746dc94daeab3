package serve

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// startQuota starts a server with limits in the file plans.csv. The function write replaces the file as other programs
// do.
func startQuota(t *testing.T, plans, quota string) (s *running, write func(plans string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write = func(plans string) {
		file := filepath.Join(filepath.Dir(path), "plans.csv")
		require.NoError(t, os.WriteFile(file+"~", []byte(plans), 0o600))
		require.NoError(t, os.Rename(file+"~", file))
	}
	write(plans)
	text := "rules: [{name: a, rate: 1/h, key: header:X-Key, max_keys: 100, quota: {file: plans.csv, " +
		"plans: {free: {rate: 2/h}, paid: {rate: 5/h}}" + quota + "}}]\n"
	require.NoError(t, os.WriteFile(path, []byte("listen: 127.0.0.1:0\n"+text), 0o600))
	return startAt(t, path), write
}

// passed returns how many of n requests with a key pass.
func passed(s *running, key string, n int) (passed int) {
	for range n {
		if a, _ := s.ask("/", "X-Key: "+key); a.status == 200 {
			passed++
		}
	}
	return passed
}

// TestAFileOfLimitsIsWatched: if the file of limits changes, the new limits soon apply, and tokens that were used still
// count. A file with a mistake changes nothing. The log then has the line and the value of the mistake, but no key.
func TestAFileOfLimitsIsWatched(t *testing.T) {
	s, write := startQuota(t, "key,plan\nanna-secret,free\nberta,paid\n", "")
	assert.Contains(t, s.log.String(), "limits read")
	assert.Equal(t, 2, passed(s, "anna-secret", 9))
	assert.Equal(t, 5, passed(s, "berta", 9))
	assert.Equal(t, 1, passed(s, "carl", 9))
	first := s.current.Load()

	write("anna-secret,paid\nberta,gold\n")
	s.waitFor("plans.csv: line 2: \\\"gold\\\": want the name of a plan")
	assert.Same(t, first, s.current.Load())
	assert.Equal(t, 0, passed(s, "anna-secret", 1))
	write("anna-secret,paid\nanna-secret,paid\n")
	s.waitFor("plans.csv: line 2: its key occurs twice")
	assert.Same(t, first, s.current.Load())

	write("anna-secret,paid\ncarl,7/h\nberta,unlimited\n")
	require.Eventually(t, func() bool { return s.current.Load() != first }, time.Minute, time.Millisecond)
	assert.Equal(t, 3, passed(s, "anna-secret", 9), "two of five were used")
	assert.Equal(t, 6, passed(s, "carl", 9), "one of seven was used")
	assert.Equal(t, 9, passed(s, "berta", 9))
	assert.NotContains(t, s.log.String(), "secret")
}

// TestKeysThatTheFileDoesNotHave: with unknown: refuse, keys that are not in the file are refused forever. They have no
// record.
func TestKeysThatTheFileDoesNotHave(t *testing.T) {
	s, write := startQuota(t, "anna,free\n", ", unknown: refuse")
	assert.Equal(t, 2, passed(s, "anna", 9))
	assert.Equal(t, 0, passed(s, "berta", 9))
	a, h := s.ask("/")
	assert.Equal(t, 429, a.status)
	assert.Empty(t, h.Get("Retry-After"))
	assert.NotContains(t, s.log.String(), "makes up values")
	first := s.current.Load()
	write("berta,free\n")
	require.Eventually(t, func() bool { return s.current.Load() != first }, time.Minute, time.Millisecond)
	assert.Equal(t, 0, passed(s, "anna", 9))
	assert.Equal(t, 2, passed(s, "berta", 9))
}

// TestMoreTiersThanALimiterHas: after a reload to more, fewer or other tiers, tokens that were used still count.
func TestMoreTiersThanALimiterHas(t *testing.T) {
	tiers := func(n, more int) string {
		var b strings.Builder
		b.WriteString("rules: [{name: a, rate: 1/h, max_keys: 100, tiers: {header: X-Key, values: {")
		for i := range n {
			fmt.Fprintf(&b, "v%d: {rate: %d/h}, ", i, i+2+more)
		}
		return b.String() + "}}}]\n"
	}
	s := start(t, tiers(14, 0))
	assert.Equal(t, 3, passed(s, "v2", 3)) // of 4 tokens
	s.change(tiers(15, 0))
	assert.Contains(t, s.log.String(), "because each request brings its own limit now; what keys have used still counts")
	assert.Equal(t, 1, passed(s, "v2", 9))
	assert.Equal(t, 16-4, passed(s, "v14", 99))
	assert.Equal(t, 0, passed(s, "v14", 9))
	g := s.current.Load()
	s.change(tiers(15, 1))
	assert.Contains(t, s.log.String(), "reload: rule a: changed: tiers")
	assert.Same(t, g.limiters["a"].Limiter, s.current.Load().limiters["a"].Limiter)
	assert.Equal(t, 1, passed(s, "v14", 9))
	s.change(tiers(14, 30))
	assert.Contains(t, s.log.String(), "because each request brings its own limit no longer")
	assert.Equal(t, 32+13-17, passed(s, "v13", 99))
}

// header is a rule whose limits come from a trusted proxy.
const header = "rules: [{name: a, rate: 1/h, key: header:X-Key, max_keys: 100, quota: {header: X-RateLimit-Policy}}]\n"

// TestALimitOfATrustedProxy: a limit that a trusted proxy sends applies to the request. A limit from another client is
// ignored. An invalid limit is logged and ignored.
func TestALimitOfATrustedProxy(t *testing.T) {
	s := start(t, "trusted_proxies: 127.0.0.1\n"+administered+header)
	ask := func(key string, n int, fields ...string) (passed int, policy string) {
		for range n {
			a, h := s.ask("/", append(fields, "X-Key: "+key)...)
			if policy = h.Get("RateLimit-Policy"); a.status == 200 {
				passed++
			}
		}
		return passed, policy
	}
	passed, policy := ask("anna", 9, `X-RateLimit-Policy: "a";q=3;w=3600`)
	assert.Equal(t, 3, passed)
	assert.Equal(t, `"a";q=3;w=3600`, policy)
	passed, _ = ask("anna", 9, `X-RateLimit-Policy: "b";q=9;w=9, "a";q=5;w=3600`)
	assert.Equal(t, 2, passed, "three of five were used")
	passed, policy = ask("berta", 9)
	assert.Equal(t, 1, passed)
	assert.Equal(t, `"a";q=1;w=3600`, policy)
	// Two lines of the field are one list.
	passed, _ = ask("carl", 9, `X-RateLimit-Policy: "b";q=9`, `X-RateLimit-Policy: "a";q=4`)
	assert.Equal(t, 4, passed)
	passed, policy = ask("dora", 9, `X-RateLimit-Policy: "a";q=many`)
	assert.Equal(t, 1, passed)
	assert.Equal(t, `"a";q=1;w=3600`, policy)
	assert.Contains(t, s.log.String(), `the header X-Ratelimit-Policy: `)
	_, metrics := s.askAdmin("/metrics")
	assert.Contains(t, metrics, `weir_requests_total{outcome="store_failed",rule="a"} 9`)
	// The client's Connection field names the field with the limit, so that a proxy could drop the limit. This changes
	// nothing.
	passed, _ = ask("emil", 9, `X-RateLimit-Policy: "a";q=2`, "Connection: X-RateLimit-Policy")
	assert.Equal(t, 2, passed)

	s.change("trusted_proxies: 192.0.2.1\n" + header)
	passed, _ = ask("fred", 9, `X-RateLimit-Policy: "a";q=3;w=3600`)
	assert.Equal(t, 1, passed, "nobody trusts this peer")
	passed, _ = ask("gerd", 9, `X-RateLimit-Policy: "`)
	assert.Equal(t, 1, passed)
}

// TestALimitBelowTheLargestCost: a trusted proxy may set a limit that the most expensive requests exceed. Such requests
// are refused. The others have the proxy's limit, and not the rule's own limit, which may be higher.
func TestALimitBelowTheLargestCost(t *testing.T) {
	s := start(t, "trusted_proxies: 127.0.0.1\n"+administered+"rules: [{name: a, rate: 100/h, key: header:X-Key, max_keys: 100, "+
		"cost: {header: X-Cost, max: 10}, quota: {header: X-RateLimit-Policy}}]\n")
	const five = `X-RateLimit-Policy: "a";q=5;w=3600`
	a, h := s.ask("/", five, "X-Key: anna", "X-Cost: 6")
	assert.Equal(t, 429, a.status)
	assert.Empty(t, h.Get("Retry-After"), "it can never pass")
	passed := 0
	for range 12 {
		if a, _ := s.ask("/", five, "X-Key: anna"); a.status == 200 {
			passed++
		}
	}
	assert.Equal(t, 5, passed)
}

// TestTheLimitOfAProxyProtocolIsTheClientS: if a balancer sends the PROXY protocol, its client is never a trusted
// proxy.
func TestTheLimitOfAProxyProtocolIsTheClientS(t *testing.T) {
	s := start(t, "trusted_proxies: 127.0.0.1\nlisten: {address: \"127.0.0.1:0\", proxy_protocol: true}\n"+
		strings.Replace(header, "key: header:X-Key", "key: global", 1))
	request := "GET / HTTP/1.1\r\nHost: x\r\nX-RateLimit-Policy: \"a\";q=9\r\n\r\n"
	assert.Equal(t, 200, s.status("PROXY TCP4 192.0.2.1 192.0.2.9 5 80\r\n", request))
	assert.Equal(t, 429, s.status("PROXY TCP4 192.0.2.1 192.0.2.9 5 80\r\n", request))
	assert.Equal(t, 429, s.status("PROXY UNKNOWN\r\n", request))
}

// TestAFileThatIsCutToNothing: if a file of limits becomes empty, the limits stay. A server with an empty file does not
// start.
func TestAFileThatIsCutToNothing(t *testing.T) {
	s, write := startQuota(t, "anna,free\n", "")
	first := s.current.Load()
	write("")
	s.waitFor("plans.csv: it has no keys: want at least one")
	assert.Same(t, first, s.current.Load())
	assert.Equal(t, 2, passed(s, "anna", 9))
	file, err := rulefile.Load(s.path)
	require.NoError(t, err)
	_, err = Start(Config{File: file, Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "rule a: quota: ")
	assert.ErrorContains(t, err, "plans.csv: it has no keys")
}
