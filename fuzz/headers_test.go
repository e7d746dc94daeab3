package fuzz

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

// A fixed store answers every call with the same decision.
type fixed engine.Decision

func (f fixed) Take(context.Context, string, uint64) (engine.Decision, error) {
	return engine.Decision(f), nil
}
func (f fixed) Refund(context.Context, string, uint64) error { return nil }

// FuzzHeaders: for every accepted name and every decision, the headers contain the decision. A parser of structured
// fields (RFC 9651) accepts the headers.
func FuzzHeaders(f *testing.F) {
	f.Add("default", "", uint64(100), uint64(50), int64(time.Second), int64(0), true)
	f.Add(`a"b\c`, "content-bytes", uint64(1<<63), uint64(1<<62), int64(1), int64(1), false)
	f.Add("é", "\x00", uint64(0), uint64(0), int64(-1), int64(engine.Never), false)
	f.Add("n", "", uint64(1), uint64(0), int64(engine.Never), int64(engine.Never), true)
	f.Fuzz(func(t *testing.T, name, unit string, limit, remaining uint64, reset, retry int64, allowed bool) {
		d := engine.Decision{Allowed: allowed, Limit: limit, Remaining: min(remaining, limit), ResetAfter: time.Duration(reset), RetryAfter: time.Duration(retry)}
		source, err := limits.NewSource(fixed(d), engine.TokenBucket(engine.PerSecond(1), 1<<20), nil)
		require.NoError(t, err)
		m, err := httplimit.New([]httplimit.Limit{{Name: name, Unit: unit, Source: source}},
			httplimit.Headers(httplimit.IETF|httplimit.Legacy|httplimit.Draft06), httplimit.PartitionKeys(nil))
		printable := func(s string) bool {
			return len(s) <= 1024 && strings.Trim(s, " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~") == ""
		}
		if (err == nil) != (name != "" && printable(name) && printable(unit)) {
			t.Fatalf("name %q, unit %q: %v", name, unit, err)
		}
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		m.Handler(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))

		policy, answer := onlyItem(t, w.Header(), "RateLimit-Policy"), onlyItem(t, w.Header(), "RateLimit")
		assert.Equal(t, name, policy.Value)
		assert.Equal(t, name, answer.Value)
		assert.EqualValues(t, min(limit, 999_999_999_999_999), integer(t, policy, "q"))
		assert.EqualValues(t, min(remaining, limit, 999_999_999_999_999), integer(t, answer, "r"))
		until := integer(t, answer, "t")
		assert.GreaterOrEqual(t, until, int64(0))
		if _, ok := policy.Params.Get("w"); ok {
			assert.GreaterOrEqual(t, integer(t, policy, "w"), int64(1))
		}
		said, ok := policy.Params.Get("qu")
		assert.Equal(t, unit != "", ok)
		if ok {
			assert.Equal(t, unit, said)
		}
		partition, ok := policy.Params.Get("pk")
		require.True(t, ok)
		assert.Len(t, partition, 8)
		again, _ := answer.Params.Get("pk")
		assert.Equal(t, partition, again)

		if after := w.Header().Get("Retry-After"); after != "" {
			seconds, err := strconv.ParseInt(after, 10, 64)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, seconds, max(until, 1))
			assert.Equal(t, 429, w.Code)
		}
		for _, header := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
			values := w.Header().Values(header)
			require.Len(t, values, 1, header)
			_, err := strconv.ParseUint(values[0], 10, 63)
			require.NoError(t, err, header)
		}
		if w.Code == 429 {
			assert.True(t, json.Valid(w.Body.Bytes()), "%s", w.Body)
		}
	})
}

// onlyItem parses a header that holds a list of one item.
func onlyItem(t *testing.T, h http.Header, name string) httpsfv.Item {
	t.Helper()
	list, err := httpsfv.UnmarshalList(h.Values(name))
	require.NoError(t, err, "%s: %q", name, h.Values(name))
	require.Len(t, list, 1, name)
	item, ok := list[0].(httpsfv.Item)
	require.True(t, ok, "%s holds %T", name, list[0])
	return item
}

func integer(t *testing.T, item httpsfv.Item, name string) int64 {
	t.Helper()
	value, _ := item.Params.Get(name)
	n, ok := value.(int64)
	require.True(t, ok, "%s is %T", name, value)
	return n
}
