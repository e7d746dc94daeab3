package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// misleading has fields with which a client can pretend to be another client or to request something else.
var misleading = []string{
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Uri",
	"Forwarded", "X_Forwarded_For", "x_real_ip", "X.Forwarded.For", "X-Forwarded_For", "X!Real!IP", "X-Real-IP",
	"True-Client-IP", "Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "X-Remote-IP", "X-Remote-Addr",
	"X-Originating-IP", "X-ProxyUser-IP", "CF-Connecting-IP", "CF-Connecting-IPv6", "CF-Pseudo-IPv4",
	"Fastly-Client-IP", "Fly-Client-IP", "DO-Connecting-IP", "X-Azure-ClientIP", "X-Azure-SocketIP",
	"X-Appengine-User-IP", "X-Envoy-External-Address", "X-Forwarded", "X-Forward-For", "Forwarded-For",
	"X-Original-URL", "X-Original-URI", "X-Original-Host", "X-Original-Method", "X-Original-For", "X-Rewrite-URL", "X-Host",
	"X-HTTP-Host-Override", "X-URL-Scheme", "X-Scheme", "Front-End-Https", "X-Envoy-Original-Path",
	"X-WAWS-Unencoded-URL", "X-Accel-Redirect", "Proxy",
	"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Override-URL", "X-Original-Path", "X-Rewrite-Path",
	"X-HTTP-DestinationURL", "Http-Host", "X-Real-Host", "X-Original-Forwarded-For", "Proxy-Client-IP",
	"WL-Proxy-Client-IP", "X-Real-Client-IP", "Remote-User", "X-Remote-User", "Remote-Addr",
}

// TestNoFieldPassesForTheProxys: the misleading fields of a client do not reach the upstream, neither in the header nor
// in the trailer.
func TestNoFieldPassesForTheProxys(t *testing.T) {
	seen := make(chan http.Header, 1)
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		all := r.Header.Clone()
		for name, values := range r.Trailer {
			all["Trailer "+name] = values
		}
		seen <- all
	})
	request := "POST / HTTP/1.1\r\nHost: x\r\nX-Mine: mine\r\nTransfer-Encoding: chunked\r\n" +
		"Trailer: X_Real_IP, True-Client-IP\r\n"
	for _, name := range misleading {
		request += name + ": bad\r\n"
	}
	request += "\r\n0\r\nX_Real_IP: bad\r\nTrue-Client-IP: bad\r\n\r\n"
	for _, trusted := range []bool{false, true} {
		text := "upstream: " + upstream + "\n" + one
		if trusted {
			text = "trusted_proxies: 127.0.0.1\n" + text
		}
		s := start(t, text)
		s.dial(request)
		header := <-seen
		assert.Equal(t, []string{"mine"}, header["X-Mine"])
		assert.Equal(t, []string{"127.0.0.1"}, header["X-Real-Ip"])
		var bad []string
		for name, values := range header {
			if strings.Contains(strings.Join(values, " "), "bad") {
				bad = append(bad, name)
			}
		}
		if trusted { // fields that a trusted proxy may write
			assert.ElementsMatch(t, []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port",
				"X-Forwarded-Prefix", "X-Forwarded-Uri"}, bad)
		} else {
			assert.Empty(t, bad)
		}
	}
}

// TestALimitOfAClientDoesNotPass: a field that sets a limit reaches the upstream only if a trusted proxy sent it.
// Otherwise a client could set its own limit at another weir that is the upstream.
func TestALimitOfAClientDoesNotPass(t *testing.T) {
	seen := make(chan http.Header, 1)
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for name, values := range r.Trailer {
			r.Header["Trailer "+name] = values
		}
		seen <- r.Header
	})
	const field = `"a";q=9`
	request := "POST / HTTP/1.1\r\nHost: x\r\nx-ratelimit-policy: " + field + "\r\nX_RateLimit_Policy: " + field +
		"\r\nTransfer-Encoding: chunked\r\nTrailer: X-RateLimit-Policy\r\n\r\n0\r\nX-RateLimit-Policy: " + field + "\r\n\r\n"
	for peer, trusted := range map[string]bool{"192.0.2.1": false, "127.0.0.1": true} {
		s := start(t, "trusted_proxies: "+peer+"\nupstream: "+upstream+"\n"+header)
		s.dial(request)
		got := <-seen
		assert.NotContains(t, got, "X_ratelimit_policy")
		if trusted {
			assert.Equal(t, []string{field}, got["X-Ratelimit-Policy"])
			continue
		}
		assert.NotContains(t, got, "X-Ratelimit-Policy")
		assert.NotContains(t, got, "Trailer X-Ratelimit-Policy")
		s.change("trusted_proxies: " + peer + "\nupstream: {url: \"" + upstream + "\", pass_headers: [X-RateLimit-Policy]}\n" + header)
		s.dial(strings.Replace(request, "Host: x", "Host: x\r\nX-Key: another", 1))
		assert.Equal(t, []string{field}, (<-seen)["X-Ratelimit-Policy"], "where the file says so")
	}
}

func TestFieldsThatAnUpstreamNeedsPass(t *testing.T) {
	seen := make(chan http.Header, 1)
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
	s := start(t, "upstream: {url: \""+upstream+"\", pass_headers: [x_legacy, true-client-ip, X-Real-IP]}\n"+one)
	s.get("/", "X_Legacy: 1", "True-Client-IP: 192.0.2.1", "X-Real-IP: 192.0.2.2", "X_Other: 2")
	header := <-seen
	assert.Equal(t, "1", header.Get("X_Legacy"))
	assert.Equal(t, "192.0.2.1", header.Get("True-Client-Ip"))
	assert.Equal(t, "192.0.2.2", header.Get("X-Real-Ip"))
	assert.NotContains(t, header, "X_other")
}

// TestTwoValuesOfAFieldThatARuleReads: weir refuses a request with two values of a field that a rule uses. Otherwise a
// client could get a new bucket by sending a second value next to its valid key.
func TestTwoValuesOfAFieldThatARuleReads(t *testing.T) {
	asked := 0
	upstream := newUpstream(t, func(http.ResponseWriter, *http.Request) { asked++ })
	s := start(t, "upstream: "+upstream+`
rules:
  - {name: a, rate: 1/h, burst: 9, key: "header:X-API-Key or none", cost: {header: X-Cost, max: 3}}
  - {name: b, rate: 1/h, burst: 9, key: "cookie:id or none", tiers: {header: X-Plan, values: {big: {burst: 99}}}}
`)
	for i, header := range [][]string{
		{"X-API-Key: 1", "X-API-Key: good"}, {"X-API-Key: good", "X-Api-Key: 2"}, {"X-API-Key: ", "X-API-Key: good"},
		{"X-Cost: 1", "X-Cost: 3"}, {"X-Plan: big", "X-Plan: small"},
		{"Cookie: id=1; id=good"}, {"Cookie: id=good", "Cookie: id=2"}, {"Cookie: id=good; id=\x80"},
	} {
		got := s.get("/", header...)
		assert.Equal(t, 400, got.status, header)
		assert.Contains(t, got.body, "The request is ambiguous: the ", fmt.Sprint(i))
	}
	assert.Zero(t, asked)
	assert.Equal(t, "200", s.statuses(1, "X-API-Key: good", "X-API-Key: good", "Cookie: id=1", "Cookie: id=1", "X: 1",
		"X: 2"))

	d, ask := startDecide(t, "rules: [{name: a, rate: 1/h, key: header:X-API-Key}]")
	require.NotNil(t, d)
	two := append([]string{"X-API-Key: 1", "X-API-Key: good"}, traefik...)
	assert.Equal(t, 400, ask("/decide", two...).StatusCode)
	assert.Equal(t, 403, ask("/decide?status=403", two...).StatusCode)
}
