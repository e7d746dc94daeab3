package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnswersDoNotWaitForTheStore (pitfall 14 of docs/budgets.md): no answer waits while tokens go back to the store.
func TestAnswersDoNotWaitForTheStore(t *testing.T) {
	for status, want := range map[int]string{200: "00000100", 500: "00000000"} {
		store := miniredis.RunT(t)
		var hangs atomic.Bool
		goOn := make(chan struct{})
		store.Server().SetPreHook(func(*server.Peer, string, ...string) bool {
			if hangs.Load() {
				<-goOn
			}
			return false
		})
		m := startModel(t, "{name: tokens, key: global, rate: 10000/month, algorithm: fixed-window, tokens: {estimate: 500}}]\n"+
			"store: {url: \"redis://"+store.Addr()+"\", timeout: 10s}\n#", func(w http.ResponseWriter, r *http.Request) {
			hangs.Store(true)
			answers(status, jsonType, map[int]string{200: usageOf(100), 500: "{}"}[status])(w, r)
		})
		resp, _ := m.post(chat, "{}")
		assert.Equal(t, status, resp.StatusCode)
		assert.NotContains(t, m.log.String(), "level=ERROR", "the store has answered nobody, nor was it given up")
		close(goOn)
		require.Eventually(t, func() bool { return storedCount(t, store) == want }, 10*time.Second, time.Millisecond, status)
		m.stop()
	}
}

// TestAnotherServerSettlesOnce (pitfall 30): if a request goes to a second server, it is charged once, by the usage
// that the second server reports.
func TestAnotherServerSettlesOnce(t *testing.T) {
	m := startModel(t, tokenRule("estimate: 500"), answers(200, jsonType, usageOf(100)))
	alive := m.current.Load().file.Upstream.Targets[0].URL.String()
	m.change("upstream: [\"http://127.0.0.1:1\", \"" + alive + "\"]\nrules: [" + tokenRule("estimate: 500") + "]\n")
	passed := 0
	for range 6 {
		if resp, _ := m.post(chat, "{}"); resp.StatusCode == 200 {
			passed++
		}
	}
	assert.Len(t, m.seen, passed)
	assert.Positive(t, passed)
	m.isSettled("tokens", 100*passed)
}

// TestLearnedCosts: costs are learned for each model. The name of the model may be in the path. A batch costs the sum
// of its items.
func TestLearnedCosts(t *testing.T) {
	held, m := 0, (*model)(nil)
	m = startModel(t, "{name: tokens, key: global, rate: 100000000/h, tokens: {estimate: learned, default_output: 1000}}", nil)
	answered := func(tokens int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			held = m.used("tokens")
			answers(200, jsonType, fmt.Sprintf(`{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":%d,"totalTokenCount":%d}}`, tokens-1, tokens))(w, r)
		}
	}
	used := 0
	ask := func(path, body string, costs int) int {
		m.serve = answered(costs)
		m.post(path, body)
		before := used
		used += costs
		m.isSettled("tokens", used)
		return held - before
	}
	for range 20 {
		ask("/v1beta/models/gemini-small:generateContent", "{}", 10)
		ask(chat, "{}", 10)
	}
	assert.InDelta(t, 12, ask("/v1beta/models/gemini-small:generateContent", "{}", 10), 3)
	assert.InDelta(t, 1000, ask("/v1beta/models/gemini-large:generateContent", "{}", 10), 30, "of another model nothing is known")
	assert.InDelta(t, 12, ask(chat, "{}", 10), 3)
	assert.InDelta(t, 3000, ask("/v1/messages/batches", `{"requests":[{},{},{}]}`, 10), 100, "a batch")
	large := strings.Repeat("x", 9<<20) // longer than max_body
	assert.Greater(t, ask(chat, `{"messages":"`+large+`"}`, 10), 2_000_000, "and what was not read")
}

// TestAskedForNobody (pitfall 20): weir asked for a usage, but no rule counts the request. The reason may be an
// exemption, or a lost store with on_loss: open. The usage is still hidden from the client.
func TestAskedForNobody(t *testing.T) {
	serve := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", sseType)
		_, _ = io.WriteString(w, someText+lastBytes+endEvent)
	}
	exempt := startModel(t, tokenRule("ask_usage: true")+"]\nadmin: {address: \"127.0.0.1:0\"}\n#", serve)
	exempt.act(200, "exempt", `"rule":"tokens","confirm":true`)
	_, got := exempt.post(chat, `{"stream":true}`)
	assert.Equal(t, someText+endEvent, got)
	assert.Equal(t, 0, exempt.used("tokens"))

	store := miniredis.RunT(t)
	open := startModel(t, tokenRule("ask_usage: true")+"]\nstore: {url: \"redis://"+store.Addr()+"\", timeout: 10s, on_loss: open}\n#", serve)
	_, got = open.post(chat, `{"stream":true}`)
	assert.Equal(t, someText+endEvent, got)
	store.Close()
	_, got = open.post(chat, `{"stream":true}`)
	assert.Equal(t, someText+endEvent, got)
}

// TestShadowsAreNoRatio: if a rule in shadow mode would refuse a request, the rule holds and charges nothing for it,
// and learns nothing from it.
func TestShadowsAreNoRatio(t *testing.T) {
	m := startModel(t, tokenRule("estimate: 6000")+"]\nadmin: {address: \"127.0.0.1:0\"}\n#", answers(200, jsonType, usageOf(6000)))
	m.act(200, "shadow", `"rule":"tokens","confirm":true`)
	for range 3 {
		resp, _ := m.post(chat, "{}")
		require.Equal(t, 200, resp.StatusCode)
	}
	shown := m.current.Load().meters.Shown("tokens")
	require.Eventually(t, func() bool { return shown().Held == 0 }, 10*time.Second, time.Millisecond)
	m.isSettled("tokens", 6000)
	assert.LessOrEqual(t, shown().P95, 1.0)
	_, metrics := m.askAdmin("/metrics")
	assert.Contains(t, metrics, `weir_tokens_actual_ratio_count{rule="tokens"} 1`)
}

// TestBodiesAreNotLogged: no line of the log has a part of a prompt or an answer. This includes errors.
func TestBodiesAreNotLogged(t *testing.T) {
	const secret = "a secret of the client"
	text := `{"usage":{"total_tokens":%s},"choices":[{"message":{"content":"` + secret + `"}}]}`
	answer := make(chan http.HandlerFunc, 1)
	m := startModel(t, tokenRule("estimate: worst, ask_usage: true, clamp: true"),
		func(w http.ResponseWriter, r *http.Request) { (<-answer)(w, r) })
	for _, a := range []http.HandlerFunc{
		answers(200, jsonType, fmt.Sprintf(text, "10")),
		answers(200, jsonType, fmt.Sprintf(text, `"`+secret+`"`)),
		answers(200, sseType, "data: "+fmt.Sprintf(text, "NaN")+"\n\n"+endEvent),
		answers(400, jsonType, `{"error":{"message":"`+secret+`"}}`),
		func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, secret)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		answer <- a
		resp, err := m.client.Do(m.request(t.Context(), http.MethodPost, chat, `{"stream":true,"max_tokens":5,"messages":[{"content":"`+secret+`"}]}`))
		require.NoError(t, err)
		_, _ = io.ReadAll(resp.Body) // one of the answers breaks off
		resp.Body.Close()
	}
	answer <- answers(200, jsonType, secret)
	m.post(chat, `{"messages":"`+secret) // not JSON
	m.stop()
	said := m.log.String()
	require.Contains(t, said, "upstream failed")
	assert.NotContains(t, said, "secret")
}
