package caddylimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/caddylimit/internal/testcaddy"
)

func start(t testing.TB, config string) *testcaddy.Config {
	t.Helper()
	return testcaddy.Start(t, "weir", config)
}

func passed(c *testcaddy.Config, n int, header ...string) (admitted int) {
	for range n {
		r := testcaddy.From("192.0.2.1:1")
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		if c.Do(r).Code == http.StatusOK {
			admitted++
		}
	}
	return admitted
}

func TestAlgorithms(t *testing.T) {
	for algorithm, numbers := range map[string]string{
		"": `"rate":"1/h","burst":4`, "token-bucket": `"rate":"4/h"`, "batch-refill": `"rate":"1/h","burst":4`,
		"fixed-window": `"rate":"4/h"`, "sliding-window": `"rate":"4/h"`, "sliding-log": `"rate":"4/h"`,
	} {
		c := start(t, `{"limits":[{"name":"algorithm `+algorithm+`","algorithm":"`+algorithm+`",`+numbers+`}]}`)
		assert.Equal(t, 4, passed(c, 10), algorithm)
	}
	aligned := start(t, `{"limits":[{"name":"aligned","algorithm":"fixed-window","aligned":true,"rate":"4/365d"}]}`)
	assert.Equal(t, 4, passed(aligned, 10))
	none := start(t, `{"limits":[{"name":"none","rate":"0"}]}`)
	assert.Equal(t, 0, passed(none, 3))
}

// TestSeveralLimitsAllOrNothing: a refused request takes nothing from any limit. The headers name the tightest limit.
func TestSeveralLimitsAllOrNothing(t *testing.T) {
	c := start(t, `{"limits":[{"name":"all","key":["everyone"],"rate":"5/h"},{"name":"own","key":["{http.request.header.X}"],"rate":"2/h"}]}`)
	assert.Equal(t, 2, passed(c, 10, "X", "a"))
	assert.Equal(t, 2, passed(c, 10, "X", "b"))
	assert.Equal(t, 1, passed(c, 10, "X", "c"))
	w := c.Do(testcaddy.From("192.0.2.1:1"))
	assert.Equal(t, http.StatusTooManyRequests, w.Code)
	assert.Equal(t, `"all";q=5;w=3600, "own";q=2;w=3600`, w.Header().Get("RateLimit-Policy"))
	assert.Contains(t, w.Header().Get("RateLimit"), `"all";r=0;t=`)
}

// TestClientsAreAddresses: the default key is 32 bits of an IPv4 or 64 bits of an IPv6 address.
func TestClientsAreAddresses(t *testing.T) {
	c := start(t, `{"limits":[{"name":"address","rate":"1/h"}]}`)
	from := func(remote string) int { return c.Do(testcaddy.From(remote)).Code }
	assert.Equal(t, 200, from("192.0.2.1:1"))
	assert.Equal(t, 429, from("192.0.2.1:2"))
	assert.Equal(t, 429, from("[::ffff:192.0.2.1]:2"))
	assert.Equal(t, 200, from("192.0.2.2:1"))
	assert.Equal(t, 200, from("[2001:db8::1]:1"))
	assert.Equal(t, 429, from("[2001:db8::2]:1"))
	assert.Equal(t, 200, from("[2001:db8:0:1::2]:1"))
}

func TestCosts(t *testing.T) {
	c := start(t, `{"limits":[{"name":"cost","rate":"10/h","cost":"{http.request.header.Cost}"}]}`)
	assert.Equal(t, 1, passed(c, 2, "Cost", "6"))
	assert.Equal(t, 0, passed(c, 1, "Cost", "-1"), "no number is no way to pay less")
	assert.Equal(t, 0, passed(c, 1, "Cost", "1e9"))
	assert.Equal(t, 4, passed(c, 10))
	fixed := start(t, `{"limits":[{"name":"fixed cost","rate":"10/h","cost":"5"}]}`)
	assert.Equal(t, 2, passed(fixed, 10))
}

// TestSettledCosts: a limit first takes the estimated cost of a request. Then the cost is corrected to the cost that
// the answer states.
func TestSettledCosts(t *testing.T) {
	c := start(t, `{"limits":[{"name":"tokens","rate":"10/h","cost":"{http.request.header.Cost}",
		"settle":"{http.response.header.X-Tokens}","refund_status":["5xx"]}]}`)
	ask := func(cost, said string, status int) bool {
		r, w := testcaddy.From("192.0.2.1:1"), httptest.NewRecorder()
		r.Header.Set("Cost", cost)
		passed := false
		err := c.Handlers[0].ServeHTTP(w, testcaddy.Prepare(r, w), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
			passed = true
			if said != "" {
				w.Header().Set("X-Tokens", said)
			}
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(status)
			return nil
		}))
		assert.Equal(t, passed, err == nil)
		return passed
	}
	assert.True(t, ask("9", "1", 200), "8 come back")
	assert.True(t, ask("9", "0", 200), "it was free")
	assert.True(t, ask("9", "", 500), "refund_status: nothing was said")
	assert.True(t, ask("9", "2", 500), "but a cost that was said stays")
	assert.False(t, ask("9", "", 200))
	for _, said := range []string{"", "x", "-1", "1.5", "18446744073709551616"} {
		assert.True(t, ask("1", said, 200), "%q: the estimate stays", said)
	}
	assert.True(t, ask("2", "", 200))
	assert.False(t, ask("1", "", 200), "all 10 are taken")

	c = start(t, `{"limits":[{"name":"panics","rate":"10/h","cost":"5","settle":"{http.response.header.X-Tokens}"}]}`)
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { ask("", "1", 0) })
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { ask("", "", 0) })
	assert.False(t, ask("", "", 200), "one cost 1, and the other its estimate")

	c = start(t, `{"limits":[{"name":"absurd","rate":"10/h","cost":"{http.request.header.Cost}","settle":"{http.response.header.X-Tokens}"}]}`)
	assert.True(t, ask("x", "4", 200), "no number holds the whole limit")
	assert.False(t, ask("x", "4", 200))
	assert.True(t, ask("6", "18446744073709551615", 200))
	assert.False(t, ask("1", "", 200))
}

func TestQuotas(t *testing.T) {
	c := start(t, `{"limits":[{"name":"quota","rate":"2/h","key":["{http.request.header.User}"],"quota":"{http.request.header.Quota}"}]}`)
	assert.Equal(t, 2, passed(c, 10, "User", "a"))
	assert.Equal(t, 5, passed(c, 10, "User", "b", "Quota", "5/h"))
	assert.Equal(t, 7, passed(c, 10, "User", "c", "Quota", "1/h 7"))
	assert.Equal(t, 10, passed(c, 10, "User", "d", "Quota", "unlimited"))
	assert.Equal(t, 0, passed(c, 10, "User", "e", "Quota", "0"))
	for _, bad := range []string{"5", "5/x", "-1/s", "1/h 0", "1/h x", "1/365d"} {
		r := testcaddy.From("192.0.2.1:1")
		r.Header.Set("Quota", bad)
		assert.Equal(t, http.StatusServiceUnavailable, c.Do(r).Code, bad)
	}
	only := start(t, `{"limits":[{"name":"only with a quota","rate":"0","quota":"{http.request.header.Quota}"}]}`)
	assert.Equal(t, 0, passed(only, 3))
	assert.Equal(t, 3, passed(only, 5, "Quota", "3/h"))
}

func TestShadowRefusesNothing(t *testing.T) {
	c := start(t, `{"limits":[{"name":"shadow","rate":"1/h","shadow":true}]}`)
	assert.Equal(t, 5, passed(c, 5))
}

// TestRequestsInFlight: a request counts until its handler returns or panics.
func TestRequestsInFlight(t *testing.T) {
	c := start(t, `{"limits":[{"name":"in flight","concurrency":2}]}`)
	serve := func(next caddyhttp.HandlerFunc) error {
		w := httptest.NewRecorder()
		return c.Handlers[0].ServeHTTP(w, testcaddy.Prepare(testcaddy.From("192.0.2.1:1"), w), next)
	}
	nested := func(inner func()) caddyhttp.HandlerFunc {
		return func(http.ResponseWriter, *http.Request) error { inner(); return nil }
	}
	require.NoError(t, serve(nested(func() {
		require.NoError(t, serve(nested(func() {
			assert.Equal(t, 0, passed(c, 3))
		})))
		assert.Equal(t, 3, passed(c, 3))
	})))
	assert.Panics(t, func() { _ = serve(nested(func() { panic("a handler") })) })
	assert.NoError(t, serve(nested(func() { assert.Equal(t, 3, passed(c, 3)) })))
}

// TestGRPCCallsAreAnsweredInTheirProtocol: gRPC clients do not understand the status 429, so refusals are in the gRPC
// protocol.
func TestGRPCCallsAreAnsweredInTheirProtocol(t *testing.T) {
	c := start(t, `{"limits":[{"name":"grpc","rate":"1/h"}]}`)
	for i, want := range []string{"", "8"} {
		r := testcaddy.From("192.0.2.1:1")
		r.Method, r.ProtoMajor, r.ProtoMinor = http.MethodPost, 2, 0
		r.Header.Set("Content-Type", "application/grpc")
		w := c.Do(r)
		assert.Equal(t, http.StatusOK, w.Code)
		assert.Equal(t, want, w.Header().Get("Grpc-Status"), "call %d", i+1)
	}
}

func TestBadLimits(t *testing.T) {
	for limit, want := range map[string]string{
		`"rate":"1/s"`:            "the name goes into headers",
		`"name":"ü","rate":"1/s"`: "printable ASCII",
		`"name":"` + strings.Repeat("x", 129) + `","rate":"1/s"`: "want 1 to 128 printable ASCII characters",
		`"name":"bad"`:                                                                                                                "neither a rate, such as 10/s, nor a concurrency",
		`"name":"bad","rate":"-1/s"`:                                                                                                  "-1",
		`"name":"bad","rate":"1"`:                                                                                                     "want tokens/period",
		`"name":"bad","rate":"1/s","algorithm":"leaky"`:                                                                               `algorithm "leaky": want token-bucket`,
		`"name":"bad","rate":"1/s","algorithm":"concurrency"`:                                                                         `algorithm "concurrency": want token-bucket`,
		`"name":"bad","rate":"5000/s","algorithm":"sliding-log"`:                                                                      "want 1 to 4096",
		`"name":"bad","rate":"1.5/s","algorithm":"fixed-window"`:                                                                      "rate 1.5/s: a fixed-window wants a whole number of requests",
		`"name":"bad","rate":"1/s","burst":2,"algorithm":"fixed-window"`:                                                              "burst 2: a fixed-window has none",
		`"name":"bad","rate":"1/s","aligned":true`:                                                                                    "use the algorithm fixed-window",
		`"name":"bad","rate":"1/s","burst":4294967297`:                                                                                "4294967297",
		`"name":"bad","concurrency":70000`:                                                                                            "70000",
		`"name":"bad","concurrency":1,"rate":"1/s"`:                                                                                   "the limit has a rate, too: write a second limit for the concurrency",
		`"name":"bad","rate":"1/s","cost":"0"`:                                                                                        `cost "0": want a whole number from 1 to the limit, which is 1`,
		`"name":"bad","rate":"1/s","cost":"2"`:                                                                                        `cost "2": want a whole number from 1 to the limit, which is 1`,
		`"name":"bad","rate":"1/s","max_wait":60000000001`:                                                                            "max_wait 1m0.000000001s: want 1ms to 1m0s",
		`"name":"bad","rate":"1/s","max_wait":-1`:                                                                                     "max_wait -1ns: want 1ms to 1m0s",
		`"name":"bad","rate":"1/s","algorithm":"fixed-window","max_wait":1000000000`:                                                  "requests can wait only for a token-bucket",
		`"name":"bad","rate":"1/s","refund_status":["5xx","199"]`:                                                                     `refund_status "199": want a status from 200 to 599`,
		`"name":"bad","rate":"1/s","refund_status":["500-400"]`:                                                                       `refund_status "500-400": want`,
		`"name":"bad","rate":"1/s","refund_status":["x"]`:                                                                             `refund_status "x": want`,
		`"name":"bad","rate":"1/s","tiers":{"by":"X","values":{"a":{"rate":"1/s"}}}`:                                                  `tiers "X": want a placeholder`,
		`"name":"bad","rate":"1/s","tiers":{"by":"{http.request.header.X}"}`:                                                          "no values: write for example paid 100/m",
		`"name":"bad","rate":"1/s","tiers":{"by":"{http.request.header.X}","values":{"a":{"rate":"x"}}}`:                              `tier "a": `,
		`"name":"bad","rate":"1/s","tiers":{"by":"{http.request.header.X}","values":{"a":{}}}`:                                        `tier "a": `,
		`"name":"bad","rate":"1/s","tiers":{"by":"{http.request.header.X}","values":{"a":{"rate":"0","burst":2}}}`:                    `tier "a": burst 2: a rate of 0 has none`,
		`"name":"bad","rate":"1/s","cost":"9","tiers":{"by":"{http.request.header.X}","values":{"a":{"rate":"8/s"}}}`:                 `cost "9": want a whole number from 1 to the limit, which is 8`,
		`"name":"bad","rate":"1/m","algorithm":"fixed-window","tiers":{"by":"{http.request.header.X}","values":{"a":{"rate":"8/s"}}}`: `tier "a": all limits of a fixed-window have one period`,
		`"name":"bad","rate":"1/s","quota":"{http.vars.q}","tiers":{"by":"{http.request.header.X}","values":{"a":{"rate":"8/s"}}}`:    "leave one of them out",
		`"name":"bad","concurrency":1,"max_wait":1000000000`:                                                                          "requests can wait only for a token-bucket, and this is a concurrency",
		`"name":"bad","rate":"unlimited","burst":2`:                                                                                   "burst 2: a rate of unlimited has none",
		`"name":"bad","rate":"1/s","settle":"5"`:                                                                                      `settle "5": want one placeholder`,
		`"name":"bad","rate":"1/s","settle":"{http.vars.a}{http.vars.b}"`:                                                             "want one placeholder",
		`"name":"bad","rate":"1/s","settle":"{http.request.header.X}"`:                                                                "a client could set its own price",
		`"name":"bad","rate":"1/s","settle":"{http.regexp.a.1}"`:                                                                      "a client could set its own price",
		`"name":"bad","rate":"1/s","settle":"{http.matchers.file.relative}"`:                                                          "a client could set its own price",
		`"name":"bad","rate":"1/s","settle":"{x"`:                                                                                     "is not closed",
		`"name":"bad","concurrency":1,"settle":"{http.vars.a}"`:                                                                       "Hold is set",
		`"name":"bad","rate":"1/s","settle":"{http.vars.a}","max_wait":1000000000`:                                                    "Hold and MaxWait are both set",
		`"name":"bad","rate":"1/s","quota":"5/s"`:                                                                                     `quota "5/s": want a placeholder`,
		`"name":"bad","rate":"1/s","quota":"{http.request.x}"`:                                                                        "no placeholder {http.request.x}",
		`"name":"bad","rate":"1/s","algorithm":"fixed-window","quota":"{http.vars.q}"`:                                                "quotas are token buckets",
		`"name":"bad","rate":"1/365d","quota":"{http.vars.q}"`:                                                                        "must fill within 1248h0m0s",
		`"name":"bad","rate":"1/s","key":["{x"]`:                                                                                      "is not closed",
		`"name":"bad","rate":"1/s","ipv4_prefix":33`:                                                                                  "ipv4_prefix 33: want 1 to 32",
		`"name":"bad","rate":"1/s","ipv6_prefix":129`:                                                                                 "ipv6_prefix 129: want 1 to 128",
		`"name":"bad","rate":"1/s","max_keys":-5`:                                                                                     "max_keys -5: want 1 to",
		`"name":"bad","rate":"1/s","overflow":"block"`:                                                                                `overflow "block": want evict, refuse or admit`,
		`"name":"bad","rate":"1/s","match":[{"none":{}}]`:                                                                             "http.matchers.none",
	} {
		c, err := testcaddy.Provision(t, "weir", `{"limits":[{`+limit+`}]}`)
		if assert.ErrorContains(t, err, want, limit) {
			continue
		}
		c.GiveUp()
	}
	const one = `"limits":[{"name":"bad","rate":"1/s"}]`
	for config, want := range map[string]string{
		`{}`: "want at least one",
		`{"limits":[{"name":"bad","rate":"1/s"},{"name":"bad","rate":"1/s"}]}`:   "the same name",
		`{"headers":["none","ietf"],` + one + `}`:                                "want styles, or only none",
		`{"headers":["x"],` + one + `}`:                                          `headers "x": want ietf`,
		`{"state":"weir",` + one + `}`:                                           `state "weir": want the full path of a folder`,
		`{"state":"/nowhere/at/all",` + one + `}`:                                "there is no folder /nowhere/at/all",
		`{"retry_jitter":"1ms",` + one + `}`:                                     "want whole seconds, 1s to 1h",
		`{"on_loss":"open",` + one + `}`:                                         "on_loss open: it needs a store",
		`{"nodes":2,` + one + `}`:                                                "nodes 2: it needs a store",
		`{"share":"10%",` + one + `}`:                                            "share 10%: it needs a store",
		`{"timeout":"1s",` + one + `}`:                                           "timeout 1s: it needs a store",
		`{"store":"redis://x","timeout":"11s",` + one + `}`:                      "timeout 11s: want 1ms to 10s",
		`{"store":"redis://x","nodes":-1,` + one + `}`:                           "nodes -1: want 1 to 100000",
		`{"store":"redis://x","nodes":100001,` + one + `}`:                       "nodes 100001: want 1 to 100000",
		`{"store":"redis://x","share":"0%",` + one + `}`:                         `share "0%": want 1% to 100%`,
		`{"store":"redis://x","share":"101%",` + one + `}`:                       `share "101%": want 1% to 100%`,
		`{"store":"redis://x","share":"10",` + one + `}`:                         `share "10": want 1% to 100%`,
		`{"store":"redis://x","share":"1%","on_loss":"open",` + one + `}`:        "share 1%: on_loss open admits no share",
		`{"store":"{env.NO_SUCH}",` + one + `}`:                                  "the address of the store",
		`{"store":"redis://:secret@127.0.0.1:1","on_loss":"closed",` + one + `}`: "the store",
	} {
		_, err := testcaddy.Provision(t, "weir", config)
		require.ErrorContains(t, err, want, config)
		assert.NotContains(t, err.Error(), "secret", "no password in an error")
	}
}
