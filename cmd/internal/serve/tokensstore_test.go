package serve

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTwoServersHaveOneBudget: two servers share the budget of a month in a store, and answers are cut to what is left
// of it. The month ends by the store's clock.
func TestTwoServersHaveOneBudget(t *testing.T) {
	store := miniredis.RunT(t)
	november := time.Date(2026, 11, 30, 22, 59, 0, 0, time.UTC) // 23:59 in Berlin
	store.SetTime(november)
	cost := 9000
	node := func() *model {
		m := startModel(t, "{name: tokens, key: global, rate: 10000/month, algorithm: fixed-window, zone: Europe/Berlin, tokens: {clamp: true}}]\n"+
			"store: {url: \"redis://"+store.Addr()+"\", timeout: 10s, nodes: 2}\n#", nil)
		m.serve = func(w http.ResponseWriter, r *http.Request) { answers(200, jsonType, usageOf(cost))(w, r) }
		return m
	}
	a, b := node(), node()
	resp, text := a.post(chat, `{"max_tokens":9500}`)
	require.Equal(t, 200, resp.StatusCode, text)
	require.Eventually(t, func() bool { return storedCount(t, store) == "00009000" }, 10*time.Second, time.Millisecond)
	cost = 1000
	resp, text = b.post(chat, `{"max_tokens":5000}`)
	require.Equal(t, 200, resp.StatusCode, text)
	var seen struct {
		Bound int `json:"max_tokens"`
	}
	require.NoError(t, json.Unmarshal([]byte(b.seen[len(b.seen)-1]), &seen))
	assert.InDelta(t, 1000, seen.Bound, 10, "cut to what is left")
	resp, _ = a.post(chat, `{"max_tokens":10}`)
	assert.Equal(t, 429, resp.StatusCode)
	store.SetTime(november.Add(time.Minute))
	resp, text = b.post(chat, `{"max_tokens":10}`)
	assert.Equal(t, 200, resp.StatusCode, text)
}

// TestAnOpenRuleCutsNothing: while the store is lost, a rule with on_loss: open does not cut answers, because the
// tokens left are unknown.
func TestAnOpenRuleCutsNothing(t *testing.T) {
	store := miniredis.RunT(t)
	m := startModel(t, tokenRule("clamp: true")+"]\nstore: {url: \"redis://"+store.Addr()+"\", timeout: 10s, on_loss: open}\n#", answers(200, jsonType, usageOf(1)))
	resp, _ := m.post(chat, `{"max_tokens":5000}`)
	require.Equal(t, 200, resp.StatusCode)
	store.Close()
	resp, _ = m.post(chat, `{"max_tokens":5000}`)
	require.Equal(t, 200, resp.StatusCode)
	assert.Equal(t, `{"max_tokens":5000}`, m.seen[len(m.seen)-1])
}

func storedCount(t *testing.T, store *miniredis.Miniredis) string {
	t.Helper()
	for _, name := range store.Keys() {
		if strings.HasPrefix(name, "weir:{") {
			value, err := store.Get(name)
			require.NoError(t, err)
			_, count, _ := strings.Cut(value, ":")
			return count
		}
	}
	require.Fail(t, "no limit in the store")
	return ""
}
