package rulefile

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/engine"
)

const full = `
listen:
  - {address: 127.0.0.1:8080, h2c: true}
  - "[::1]:8081"
admin: {address: localhost:9090, pprof: true, keys: full}
upstream: http://127.0.0.1:3000
routes:
  - match: {host: "*.static.example.com"}
    upstream: {url: http://127.0.0.1:3001/base, response_timeout: 5s, keep_host: true, h2c: true}
trusted_proxies: [10.0.0.0/8, "::1", "::ffff:192.0.2.0/120"]
client_ip: {ipv6_prefix: 56}
headers: both
response: {body: json, retry_jitter: 1s}
server: {idle_timeout: 1m, max_header_bytes: 32KiB, max_connections: 1000}
rules:
  - &base
    name: login
    match: {host: API.example.com., path: /login, method: [POST], header: {X-Env: prod}}
    key: [ip, header:x-api-key]
    rate: 10/s
    burst: 20
    tiers: {header: X-Plan, values: {free: {rate: 1/s, burst: 5}, paid: {burst: 200}}}
    refund_status: [2xx, 304]
  - <<: *base
    name: copy
    key: cookie:sid or none
    cost: {header: X-Cost, max: 4}
    shadow: true
    max_keys: 10
    overflow: refuse
  - name: window
    algorithm: fixed-window
    aligned: true
    rate: 100/m
    tiers: {header: X-Plan, values: {free: {rate: 10/m}}}
`

func TestAFullFile(t *testing.T) {
	f, err := Parse("weir.yaml", []byte(full))
	require.NoError(t, err)
	assert.Equal(t, []Listener{{Address: "127.0.0.1:8080", H2C: true}, {Address: "[::1]:8081"}}, f.Listen)
	assert.Equal(t, &Admin{Address: "localhost:9090", Pprof: true, Keys: admin.KeysFull}, f.Admin)
	assert.Equal(t, "http://127.0.0.1:3000", f.Upstream.String())
	assert.Equal(t, time.Minute, f.Upstream.ResponseTimeout)
	assert.False(t, f.Echo())
	require.Len(t, f.Routes, 1)
	route := f.Routes[0].Upstream
	assert.Equal(t, "http://127.0.0.1:3001/base", route.String())
	route.Targets = nil
	assert.Equal(t, Upstream{Servers: proxy.Servers{ConnectTimeout: 10 * time.Second, ResponseTimeout: 5 * time.Second, KeepHost: true,
		H2C: true}}, route)
	assert.Equal(t, []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("192.0.2.0/24"),
	}, f.TrustedProxies)
	assert.Equal(t, ClientIP{From: FromXForwardedFor, IPv4Prefix: 32, IPv6Prefix: 56}, f.ClientIP)
	assert.Equal(t, HeadersBoth, f.Headers)
	assert.Equal(t, Response{Body: BodyJSON, RetryJitter: time.Second}, f.Response)
	assert.Equal(t, Server{
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, ShutdownTimeout: 10 * time.Second,
		MaxHeaderBytes: 32 << 10, MaxConnections: 1000, MaxConnectionsPerClient: ByShare, SendTimeout: time.Minute, MaxWaiting: 1000, MinBodyRate: 240,
	}, f.Server)

	login, twin, window := f.Rules[0], f.Rules[1], f.Rules[2]
	assert.Equal(t, Key{{{Kind: SourceIP}}, {{SourceHeader, "X-Api-Key"}, {Kind: SourceIP}}}, login.Key)
	assert.Equal(t, engine.TokenBucket(engine.PerSecond(10), 20), login.Policy)
	assert.Equal(t, &Tiers{Header: "X-Plan", Values: []string{"free", "paid"}, Policies: []engine.Policy{
		engine.TokenBucket(engine.PerSecond(1), 5), engine.TokenBucket(engine.PerSecond(10), 200),
	}}, login.Tiers)
	assert.Equal(t, []int{0, 1, 2}, []int{login.Tiers.TierOf("gold"), login.Tiers.TierOf("free"), login.Tiers.TierOf("paid")})
	assert.True(t, login.Refund.Contains(204) && login.Refund.Contains(304) && !login.Refund.Contains(404))
	assert.Equal(t, Cost{Default: 1, Max: 1}, login.Cost)
	memory, err := login.Memory()
	require.NoError(t, err)
	limiter, err := login.NewLimiter()
	require.NoError(t, err)
	defer limiter.Close()
	assert.Equal(t, limiter.Stats().Bytes, memory)

	assert.Equal(t, login.Match, twin.Match, "merged")
	assert.Equal(t, Key{{{SourceCookie, "sid"}, {Kind: SourceNone}}}, twin.Key)
	assert.Equal(t, Cost{Header: "X-Cost", Default: 1, Max: 4}, twin.Cost)
	assert.True(t, twin.Shadow)
	assert.Equal(t, 10, twin.MaxKeys)
	assert.Equal(t, engine.Refuse, twin.Overflow)
	assert.Equal(t, engine.FixedWindow(100, time.Minute).Aligned(), window.Policy)
	assert.Equal(t, []engine.Policy{engine.FixedWindow(10, time.Minute).Aligned()}, window.Tiers.Policies)

	r := httptest.NewRequest("POST", "http://api.EXAMPLE.com:8080//%6cogin", nil)
	assert.False(t, login.Match.Matches(r), "no header")
	r.Header.Set("x-env", "prod")
	assert.True(t, login.Match.Matches(r))
}

func TestWeightsOf(t *testing.T) {
	file, err := Parse("weir.yaml", []byte("rules: [{name: a, rate: 9/m, tokens: {count: {input: 1, output: 1, models: {big*: {input: 9}, Mini: {input: 2}}}}}]"))
	require.NoError(t, err)
	count := &file.Rules[0].Tokens.Count
	for model, want := range map[string]string{
		"big": "big*", "BIG-2": "big*", "Big": "big*", "mini": "Mini", "Mini": "Mini", "mini-2": "own", "bi": "own", "": "own",
	} {
		weights := count.Weights
		for _, m := range count.Models {
			if m.Name == strings.TrimSuffix(want, "*") {
				weights = m.Weights
			}
		}
		require.NotEqual(t, want == "own", weights != count.Weights, want)
		require.Equal(t, weights, count.WeightsOf(model), model)
	}
}
