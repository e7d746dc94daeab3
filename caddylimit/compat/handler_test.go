package compat

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"

	"github.com/weir-go/weir/caddylimit/internal/testcaddy"
)

// TestExactLog: in each interval of the window's length, at most the allowed number of events pass. An event older than
// the window does not count.
func TestExactLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := testcaddy.Provision(t, module, zones(`"exact":{"key":"k","window":"10s","max_events":3}`))
		require.NoError(t, err)
		c.Start(t)
		for second, want := range []int{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0} {
			w := c.Do(testcaddy.From("192.0.2.1:1"))
			assert.Equal(t, want == 1, w.Code == http.StatusOK, "second %d", second)
			if want == 0 && second < 10 {
				assert.Equal(t, strconv.Itoa(10-second), w.Header().Get("Retry-After"), "second %d", second)
			}
			time.Sleep(time.Second)
		}
		c.Stop(t)
	})
}

// TestRetryAfterIsRoundedUp: a client that comes back after Retry-After is admitted.
func TestRetryAfterIsRoundedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, zones(`"round":{"key":"k","window":"1500ms","max_events":1}`))
		require.Equal(t, 1, passed(c, 1, "192.0.2.1:1"))
		time.Sleep(100 * time.Millisecond)
		w := c.Do(testcaddy.From("192.0.2.1:1"))
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		assert.Equal(t, "2", w.Header().Get("Retry-After"))
		time.Sleep(2 * time.Second)
		assert.Equal(t, 1, passed(c, 1, "192.0.2.1:1"))
		c.Stop(t)
	})
}

func TestJitterIsAPartOfTheWait(t *testing.T) {
	c := start(t, `{"jitter":0.5,"rate_limits":{"jitter":{"key":"k","window":"1000s","max_events":1}}}`)
	require.Equal(t, 1, passed(c, 1, "192.0.2.1:1"))
	least, most := 1<<30, 0
	for range 200 {
		seconds, err := strconv.Atoi(c.Do(testcaddy.From("192.0.2.1:1")).Header().Get("Retry-After"))
		require.NoError(t, err)
		least, most = min(least, seconds), max(most, seconds)
	}
	assert.GreaterOrEqual(t, least, 990)
	assert.LessOrEqual(t, most, 1500)
	assert.Greater(t, most-least, 100, "of 200 draws from 0 to 500")
}

// TestNoEventsRefuseAll: a zone without events refuses all, without Retry-After, because no wait would help.
func TestNoEventsRefuseAll(t *testing.T) {
	c := start(t, zones(`"none":{"key":"k","window":"1m","max_events":0}`))
	w := c.Do(testcaddy.From("192.0.2.1:1"))
	assert.Equal(t, http.StatusTooManyRequests, w.Code)
	assert.Empty(t, w.Header().Get("Retry-After"))
}

// TestTheZoneWithTheLongestWaitIsNamed: if several zones refuse, the error names the zone whose wait is in Retry-After.
func TestTheZoneWithTheLongestWaitIsNamed(t *testing.T) {
	c := start(t, zones(`"minute":{"window":"1m","max_events":1}, "hour":{"window":"1h","max_events":1}`))
	require.Equal(t, 1, passed(c, 1, "192.0.2.1:1"))
	w := c.Do(testcaddy.From("192.0.2.1:1"))
	assert.Equal(t, "3600", w.Header().Get("Retry-After"))
}

func TestMatchersAndPrefixes(t *testing.T) {
	c := start(t, zones(`"matched":{"match":[{"method":["POST"]},{"path":["/login"]}],"key":"{http.request.remote.host}",
		"ipv4_prefix":24,"ipv6_prefix":64,"window":"1h","max_events":2}`))
	assert.Equal(t, 9, passed(c, 9, "192.0.2.1:1"), "GET / is in no zone")
	post := func(r *http.Request) { r.Method = http.MethodPost }
	login := func(r *http.Request) { r.URL.Path = "/login" }
	assert.Equal(t, 1, passed(c, 1, "192.0.2.1:1", post))
	assert.Equal(t, 1, passed(c, 9, "192.0.2.99:1", login))
	assert.Equal(t, 0, passed(c, 9, "[::ffff:192.0.2.7]:1", post))
	assert.Equal(t, 2, passed(c, 9, "[2001:db8::1]:1", post))
	assert.Equal(t, 0, passed(c, 9, "[2001:db8::ffff:1]:1", post))
}

// TestTooManyEventsForALog: a zone with more than 4,096 events uses the sliding window counter. If the window is short,
// a zone with fewer events uses it, too.
func TestTooManyEventsForALog(t *testing.T) {
	for _, c := range []struct {
		events int
		window time.Duration
		want   engine.Algorithm
	}{
		{4096, time.Minute, engine.AlgorithmSlidingLog}, {4097, time.Minute, engine.AlgorithmSlidingWindow},
		{4000, time.Millisecond, engine.AlgorithmSlidingWindow}, {1 << 23, time.Hour, engine.AlgorithmSlidingWindow},
	} {
		policy, err := (&RateLimit{MaxEvents: c.events, Window: caddy.Duration(c.window)}).policy()
		require.NoError(t, err)
		assert.Equal(t, c.want, policy.Algorithm(), "%d in %v", c.events, c.window)
	}
	c := start(t, zones(`"many":{"key":"k","window":"1h","max_events":4097}`))
	assert.Equal(t, 4097, passed(c, 5000, "192.0.2.1:1"))
	notes := c.Handlers[0].(*Handler).byName["0"].notes
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "4097 events in 1h0m0s are too many for an exact log")
}

func TestBadConfigurations(t *testing.T) {
	for _, c := range [][2]string{
		{`"window":"-1s","max_events":1`, "window -1s: want 1µs to"},
		{`"max_events":1`, "window 0s: want 1µs to"},
		{`"window":"9000h","max_events":1`, "window 9000h0m0s: want 1µs to 8760h0m0s"},
		{`"window":"1m","max_events":-1`, "max_events -1: want 0 to 16777215"},
		{`"window":"1m","max_events":16777216`, "max_events 16777216: want 0 to 16777215"},
		{`"window":"1m","max_events":1,"ipv4_prefix":33`, "ipv4_prefix 33: want 1 to 32"},
		{`"window":"1m","max_events":1,"ipv6_prefix":-1`, "ipv6_prefix -1: want 1 to 128"},
		{`"window":"1m","max_events":1,"max_keys":-1`, "max_keys -1: want 1 to"},
		{`"window":"1m","max_events":1,"key":"{http.request.remote.hots}"`, "no placeholder {http.request.remote.hots}"},
		{`"window":"1m","max_events":1,"match":[{"nothing":{}}]`, "http.matchers.nothing"},
		{`"window":"1m","max_events":1,"evnts":1`, "evnts"},
	} {
		err := refused(t, zones(`"bad":{`+c[0]+`}`))
		assert.ErrorContains(t, err, c[1])
	}
	const zone = `"rate_limits":{"bad":{"window":"1m","max_events":1}}`
	for _, c := range [][2]string{
		{`{"jitter":-0.1,` + zone + `}`, "jitter -0.1: want"},
		{`{"sweep_interval":"-1s",` + zone + `}`, "sweep_interval -1s: want 1ms to 24h"},
		{`{"on_loss":"open",` + zone + `}`, "it needs a store"},
		{`{"store":"redis://localhost","on_loss":"maybe",` + zone + `}`, `on_loss "maybe": want share, closed or open`},
		{`{"store":"{env.NO_SUCH_VARIABLE}",` + zone + `}`, "the address of the store"},
		{`{"rate_limits":{"bad":null}}`, `zone "bad": it is null`},
	} {
		assert.ErrorContains(t, refused(t, c[0]), c[1])
	}
	// An error does not contain the password of a store.
	err := refused(t, `{"store":"redis://:secret@127.0.0.1:1/%zz",`+zone+`}`)
	assert.NotContains(t, err.Error(), "secret")
}

// TestTwoHandlersOfOneZone: two handlers share a zone by its name, and cannot give it different numbers.
func TestTwoHandlersOfOneZone(t *testing.T) {
	const shared = `"shared":{"key":"k","window":"1h","max_events":3}`
	c := testcaddy.Start(t, module, zones(shared), zones(shared))
	require.Equal(t, http.StatusOK, c.DoBy(0, testcaddy.From("192.0.2.1:1")).Code)
	require.Equal(t, http.StatusOK, c.DoBy(1, testcaddy.From("192.0.2.1:1")).Code)
	require.Equal(t, http.StatusOK, c.DoBy(0, testcaddy.From("192.0.2.1:1")).Code)
	require.Equal(t, http.StatusTooManyRequests, c.DoBy(1, testcaddy.From("192.0.2.1:1")).Code)
	swept, err := testcaddy.Provision(t, module, zones(shared), `{"sweep_interval":"5s","rate_limits":{`+shared+`}}`)
	require.NoError(t, err, "when idle keys are forgotten changes nothing")
	swept.GiveUp()
	_, err = testcaddy.Provision(t, module, zones(shared), zones(`"shared":{"key":"k","window":"1h","max_events":4}`))
	assert.ErrorContains(t, err, `zone "shared": it is sliding log 4/1h0m0s here, and sliding log 3/1h0m0s in another handler`)
}

func TestNoZones(t *testing.T) {
	assert.Equal(t, 3, passed(start(t, `{}`), 3, "192.0.2.1:1"))
}

// TestZoneNamesAreAnyText: the name of a zone may be any text, as in the original.
func TestZoneNamesAreAnyText(t *testing.T) {
	for _, name := range []string{"", "für alle", `a "b"`} {
		c := start(t, zones(fmt.Sprintf(`%q:{"window":"1h","max_events":1}`, name)))
		assert.Equal(t, 1, passed(c, 3, "192.0.2.1:1"), name)
	}
}
