package serve

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clamped starts a model behind a rule with clamp. Some tokens of the rule are already used.
func clamped(t *testing.T, used int, more string) *model {
	m := startModel(t, tokenRule("clamp: true")+more, answers(200, jsonType, usageOf(used)))
	m.post(chat, "{}")
	m.isSettled("tokens", used)
	m.serve = answers(200, jsonType, usageOf(0))
	return m
}

// TestClamp: the bound of an answer is lowered to the tokens left. Nothing else in the body changes. If too few tokens
// for the prompt are left, the request is refused.
func TestClamp(t *testing.T) {
	m := clamped(t, 9000, "")
	var length int64
	held := 0
	m.serve = func(w http.ResponseWriter, r *http.Request) {
		length, held = r.ContentLength, m.used("tokens")
		answers(200, jsonType, usageOf(0))(w, r)
	}
	const prompt = 200 // in tokens of 4 bytes, including the keys
	words := strings.Repeat("word", prompt-9)
	body := func(bound int) string {
		return fmt.Sprintf("{ \"stream\": true, \"max_tokens\": %d, \"messages\" : [{\"content\" : \"%s\"}] }\n", bound, words)
	}
	resp, _ := m.post(chat, body(5000))
	assert.Equal(t, 200, resp.StatusCode)
	var seen struct {
		Bound int `json:"max_tokens"`
	}
	got := m.seen[len(m.seen)-1]
	require.NoError(t, json.Unmarshal([]byte(got), &seen))
	assert.InDelta(t, 1000-prompt, seen.Bound, 10)
	assert.Equal(t, body(seen.Bound), got, "nothing else changes")
	assert.Equal(t, int64(len(got)), length)
	assert.Equal(t, 10000, held, "all that was left")
	m.isSettled("tokens", 9000)

	m.post(chat, body(300))
	assert.Equal(t, body(300), m.seen[len(m.seen)-1], "a bound that fits stays")
	m.post(chat, `{"messages":[]}`)
	got = m.seen[len(m.seen)-1]
	require.NoError(t, json.Unmarshal([]byte(strings.Replace(got, "max_completion_tokens", "max_tokens", 1)), &seen))
	assert.InDelta(t, 1000, seen.Bound, 10, "less is left than the default_output of 1024: %s", got)

	n := len(m.seen)
	words = strings.Repeat("word", 1100)
	resp, text := m.post(chat, body(10))
	assert.Equal(t, 429, resp.StatusCode, text)
	assert.Len(t, m.seen, n, "the prompt alone is more than what is left")
}

// TestClampWithRoom: if enough tokens for the estimate are left, the body does not change.
func TestClampWithRoom(t *testing.T) {
	m := clamped(t, 100, "")
	for _, body := range []string{`{"max_tokens": 5000}`, `{"messages": []}`, "no json", `{"requests":[{"params":{"max_tokens":8000}}]}`} {
		m.post(chat, body)
		assert.Equal(t, body, m.seen[len(m.seen)-1])
		m.isSettled("tokens", 100)
	}
}

// TestClampKeepsTheLimit: several requests are in progress at the same time. Even with the longest answers that they
// permit, they do not exceed the limit together.
func TestClampKeepsTheLimit(t *testing.T) {
	url := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Bound int `json:"max_tokens"`
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		_, _ = fmt.Fprintf(w, `{"usage":{"prompt_tokens":3,"completion_tokens":%d}}`, q.Bound)
	})
	m := &model{running: start(t, "upstream: "+url+"\nrules: ["+tokenRule("clamp: true")+"]\n")}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			resp, err := m.client.Do(m.request(t.Context(), http.MethodPost, chat, `{"max_tokens":3000}`))
			if assert.NoError(t, err) {
				resp.Body.Close()
			}
		})
	}
	all.Wait()
	held := m.current.Load().meters.Shown("tokens")
	assert.Eventually(t, func() bool { return held().Held == 0 }, 10*time.Second, time.Millisecond)
	assert.LessOrEqual(t, m.used("tokens"), 10000)
	assert.GreaterOrEqual(t, m.used("tokens"), 9000, "all but some prompts is used")
}

// TestClampCompressed: if the bound in a compressed body is lowered, the body is passed on uncompressed. Otherwise it
// is passed on unchanged. A signed body never changes. Its complete cost is held, or the request is refused.
func TestClampCompressed(t *testing.T) {
	m := clamped(t, 9000, "")
	var encoding string
	m.serve = func(w http.ResponseWriter, r *http.Request) {
		encoding = r.Header.Get("Content-Encoding")
		answers(200, jsonType, usageOf(0))(w, r)
	}
	send := func(body, header string) int {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = io.WriteString(z, body)
		require.NoError(t, z.Close())
		r := m.request(t.Context(), http.MethodPost, chat, packed.String())
		r.Header.Set("Content-Encoding", "gzip")
		if header != "" {
			r.Header.Set(header, "x")
		}
		resp, err := m.client.Do(r)
		require.NoError(t, err)
		resp.Body.Close()
		m.isSettled("tokens", 9000)
		return resp.StatusCode
	}
	assert.Equal(t, 200, send(`{"max_tokens":5000}`, ""))
	assert.Empty(t, encoding)
	assert.Regexp(t, `^\{"max_tokens":9[0-9][0-9]\}$`, m.seen[len(m.seen)-1])
	assert.Equal(t, 200, send(`{"max_tokens":500}`, ""))
	assert.Equal(t, "gzip", encoding)
	for _, header := range []string{"Content-Digest", "X-Amz-Content-Sha256"} {
		assert.Equal(t, 429, send(`{"max_tokens":5000}`, header))
		assert.Equal(t, 200, send(`{"max_tokens":500}`, header))
	}
}

// TestClampOfSeveral: if several limits apply, the answer is cut to the tokens of the limit with the fewest left. A
// limit in shadow mode does not count.
func TestClampOfSeveral(t *testing.T) {
	more := ", {name: day, key: global, rate: 9500/h, tokens: {clamp: true}}, " +
		"{name: shadow, key: global, rate: 9100/h, shadow: true, tokens: {clamp: true}}"
	m := clamped(t, 9000, more)
	m.post(chat, `{"max_tokens":5000}`)
	assert.Regexp(t, `^\{"max_tokens":4[0-9][0-9]\}$`, m.seen[len(m.seen)-1])
}

// TestPrices: a budget in dollars uses the weights of the request's model. If the model is not listed, it uses those of
// the rule. A request costs at least one token of the limit.
func TestPrices(t *testing.T) {
	m := startModel(t, `{name: dollars, key: global, rate: 1000000/month, algorithm: fixed-window, zone: Europe/Berlin, tokens: {scale: 1000, `+
		`count: {input: 300, output: 1500, models: {"tiny*": {input: 0.5, output: 1}, tiny-max: {input: 20, output: 100}}}}}`,
		answers(200, jsonType, `{"usage":{"prompt_tokens":30,"completion_tokens":70}}`))
	used := 0
	for _, c := range []struct {
		body string
		want int
	}{
		{`{"model":"big"}`, 114}, {`{}`, 114}, {`{"model":"tiny"}`, 1}, {`{"model":"tiny-2"}`, 1}, {`{"model":"tiny-max"}`, 8},
		{`{"model":"tiny","model":"big"}`, 114}, {`{"model":"big","model":"tiny"}`, 114}, {`{"model":"tiny","MODEL":"big"}`, 114},
		{`{"model":"tiny","model":5}`, 114}, {`{"model":"tiny","model":"tiny"}`, 1}, {`{"model":"tiny",}`, 114},
	} {
		m.post(chat, c.body)
		used += c.want
		m.isSettled("dollars", used)
	}
	for _, batch := range []string{ // the models of a batch are inside (pitfall 40 of docs/budgets.md)
		`{"requests":[{"params":{"model":"tiny","max_tokens":1}}]}`, `{"model":"tiny","requests":[{"params":{"model":"big","max_tokens":1}}]}`,
	} {
		m.post("/v1/messages/batches", batch)
		used += 114
		m.isSettled("dollars", used)
	}
	m.serve = answers(200, jsonType, `{"usage":{"prompt_tokens":0,"completion_tokens":1}}`)
	m.post(chat, `{"model":"tiny"}`)
	m.isSettled("dollars", used+1)
}
