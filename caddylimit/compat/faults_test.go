package compat

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/caddylimit/internal/testcaddy"
	"github.com/weir-go/weir/caddylimit/internal/zone"
)

// These tests are about faults of mholt/caddy-ratelimit that users reported or its source shows. Package zone tests one
// more fault: decisions must not take a lock of the zones.

// TestEarlierZonesAreNotChargedWhenALaterOneRefuses: a request that is refused costs nothing in any zone.
func TestEarlierZonesAreNotChargedWhenALaterOneRefuses(t *testing.T) {
	c := start(t, zones(`
		"tight":{"key":"{http.request.remote.host}","window":"1h","max_events":3},
		"wide":{"key":"static","window":"1h","max_events":5}`))
	require.Equal(t, 3, passed(c, 3, "192.0.2.1:1"))
	require.Equal(t, 2, passed(c, 10, "192.0.2.2:1"), "the wide zone refuses the rest")
	second := start(t, zones(`"tight":{"key":"{http.request.remote.host}","window":"1h","max_events":3}`))
	assert.Equal(t, 1, passed(second, 10, "192.0.2.2:1"), "of 3 events 2 were admitted, and nothing else was charged")
}

// TestTheTightestZoneIsTriedFirst: the original sorts the zones in the opposite order.
func TestTheTightestZoneIsTriedFirst(t *testing.T) {
	c := start(t, zones(`
		"wide":{"window":"1s","max_events":100},
		"narrow":{"window":"1h","max_events":100},
		"b":{"window":"1m","max_events":10}, "a":{"window":"1m","max_events":10}`))
	h := c.Handlers[0].(*Handler)
	var order []string
	for i := range 4 {
		order = append(order, h.byName[strconv.Itoa(i)].use.Name())
	}
	assert.Equal(t, []string{"narrow", "a", "b", "wide"}, order)
}

// TestKeysAreNotLabels: metrics have no label for keys, so clients cannot create time series.
func TestKeysAreNotLabels(t *testing.T) {
	c := start(t, zones(`"labels":{"key":"{http.request.header.X}","window":"1h","max_events":1}`))
	count := func() (series int, text string) {
		ctx := c.Context()
		families, err := ctx.GetMetricsRegistry().Gather()
		require.NoError(t, err)
		for _, family := range families {
			if strings.HasPrefix(family.GetName(), "caddy_rate_limit_") {
				series += len(family.Metric)
				text += family.String()
			}
		}
		return series, text
	}
	passed(c, 1, "192.0.2.1:1")
	before, _ := count()
	for i := range 1000 {
		passed(c, 2, "192.0.2.1:1", func(r *http.Request) { r.Header.Set("X", "key"+strconv.Itoa(i)) })
	}
	after, text := count()
	assert.Equal(t, 5, before)
	assert.Equal(t, before, after)
	assert.NotContains(t, text, "key1")
}

// TestMemoryOfKeysIsBounded (#44: 4.8 GB): the original reserves 24 bytes for each event of the limit for every new
// key, without a bound. Here the memory must be bounded.
func TestMemoryOfKeysIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred thousand keys, several times")
	}
	const keys = 100_000
	for _, events := range []int{10, 100, 1000, 5000} {
		before := resident(t)
		c := start(t, zones(`"memory`+strconv.Itoa(events)+`":{"key":"{http.request.header.X}","window":"1h","max_events":`+strconv.Itoa(events)+`}`))
		h := c.Handlers[0].(*Handler)
		r := testcaddy.Prepare(testcaddy.From("192.0.2.1:1"), httptest.NewRecorder())
		for i := range keys {
			r.Header.Set("X", strconv.Itoa(i))
			res := h.limits.Decide(r)
			require.True(t, res.Allowed())
		}
		used, formula := resident(t)-before, 24*events*keys
		_, evicted := h.byName["0"].use.Keys()
		t.Logf("%d keys of %d events: %d MB in use, %d keys forgotten; the original reserves %d MB", keys, events, used>>20, evicted, formula>>20)
		const noise = 30 << 20 // variation of the heap
		assert.Less(t, used, formula+noise, "%d events", events)
		assert.Less(t, used, zone.TableBytes+noise, "%d events", events)
		c.Stop(t)
	}
}

func resident(t *testing.T) int {
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("this system does not tell what memory is in use:", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	require.NoError(t, err)
	return pages * os.Getpagesize()
}

// TestKeysBeyondTheRoomOfAZone: memory is bounded, a drained key stays drained as long as other keys have used less,
// and metrics count the forgotten keys.
func TestKeysBeyondTheRoomOfAZone(t *testing.T) {
	c := start(t, zones(`"room":{"key":"{http.request.header.X}","window":"1h","max_events":3,"max_keys":100}`))
	as := func(key string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("X", key) }
	}
	require.Equal(t, 3, passed(c, 10, "192.0.2.1:1", as("victim of its own")))
	use := c.Handlers[0].(*Handler).byName["0"].use
	for i := range 10_000 {
		passed(c, 1, "192.0.2.1:1", as(strconv.Itoa(i)))
	}
	assert.Zero(t, passed(c, 10, "192.0.2.1:1", as("victim of its own")), "made-up keys do not win a fresh bucket")
	_, evicted := use.Keys()
	assert.Positive(t, evicted)
}

// TestNoStateFilesAreRead (#96: half-written files): the handler ignores the settings by which the original shares
// zones between machines, and warns if there is no store. As in the original, null counts as not set.
func TestNoStateFilesAreRead(t *testing.T) {
	const zone = `"rate_limits":{"z":{"window":"1m","max_events":1}}`
	for config, warned := range map[string]bool{
		`{` + zone + `,"distributed":{}}`: true,
		`{` + zone + `,"distributed":{"write_interval":"5s","read_interval":"5s","purge_age":"1m"}}`: true,
		`{` + zone + `,"storage":{"module":"file_system","root":"/a"}}`:                              true,
		`{` + zone + `,"distributed":null,"storage":null}`:                                           false,
	} {
		var h Handler
		require.NoError(t, json.Unmarshal([]byte(config), &h))
		assert.Equal(t, warned, h.countsAlone(), config)
		h.Store = "redis://127.0.0.1"
		assert.False(t, h.countsAlone(), config)
		c := start(t, config)
		assert.Equal(t, 1, passed(c, 3, "192.0.2.1:1"), config)
		c.Stop(t)
	}
	assert.ErrorContains(t, refused(t, `{`+zone+`,"distributed":{"purge_age":-1}}`), "distributed: a duration below 0")
}
