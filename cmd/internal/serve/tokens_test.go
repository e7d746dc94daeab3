package serve

import (
	"bytes"
	"compress/gzip"
	"context"
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

	"github.com/weir-go/weir/cmd/internal/usage"
	"github.com/weir-go/weir/limits"
)

const chat = "/v1/chat/completions"

// A model is a test upstream that acts as a language model. It is behind a running server. The tests below name
// pitfalls by their numbers in docs/budgets.md.
type model struct {
	*running
	mu    sync.Mutex
	serve http.HandlerFunc
	seen  []string // bodies of the requests
}

// tokenRule returns a rule that counts tokens. Its keys get no tokens back within a test.
func tokenRule(more string) string {
	return "{name: tokens, key: global, rate: 10000/h, tokens: {" + more + "}}"
}

func startModel(t *testing.T, rules string, serve http.HandlerFunc) *model {
	m := &model{serve: serve}
	url := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		m.seen = append(m.seen, string(body))
		serve := m.serve
		m.mu.Unlock()
		serve(w, r)
	})
	m.running = start(t, "upstream: "+url+"\nrules: ["+rules+"]\n")
	return m
}

// The method used returns how many tokens of a rule are used. Debts are included.
func (m *model) used(name string) int {
	m.t.Helper()
	g := m.current.Load()
	for _, rule := range g.rules {
		if rule.Name != name {
			continue
		}
		l := g.limiters[name].Limiter
		key, ok := rule.Limit().Key(limits.HasherOf(l), rule.Typed(nil))
		require.True(m.t, ok)
		owes := 0
		if d := l.Peek(key, 1); !d.Allowed && d.RetryAfter > 0 { // a token of 10000/h comes back in 360 ms
			owes = int((d.RetryAfter - 1) / (time.Hour / time.Duration(d.Limit)))
		}
		d := l.Peek(key, 0)
		return int(d.Limit-d.Remaining) + owes
	}
	m.t.Fatal(name)
	return 0
}

// isSettled waits until a rule has used the given number of tokens. It must wait because the handler settles after the
// client may have its answer.
func (m *model) isSettled(name string, tokens int) {
	m.t.Helper()
	assert.Eventually(m.t, func() bool { return m.used(name) == tokens }, 10*time.Second, time.Millisecond)
	assert.Equal(m.t, tokens, m.used(name))
}

func (m *model) request(ctx context.Context, method, path, body string) *http.Request {
	m.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(m.URL(), "/")+path, strings.NewReader(body))
	require.NoError(m.t, err)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func (m *model) post(path, body string) (*http.Response, string) {
	m.t.Helper()
	resp, err := m.client.Do(m.request(m.t.Context(), http.MethodPost, path, body))
	require.NoError(m.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(m.t, err)
	return resp, string(text)
}

func answers(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func usageOf(tokens int) string {
	return fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, tokens/2, tokens-tokens/2, tokens)
}

const (
	jsonType  = "application/json"
	sseType   = "text/event-stream"
	someText  = "data: {\"choices\":[{\"delta\":{\"content\":\"twelve bytes\"}}]}\n\n"
	endEvent  = "data: [DONE]\n\n"
	lastBytes = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":70,\"total_tokens\":100}}\n\n"
)

// TestParallelRequestsKeepTheBound (pitfall 1): several requests use a new key at the same time. Only those whose
// estimates fit into the limit pass.
func TestParallelRequestsKeepTheBound(t *testing.T) {
	release := make(chan struct{})
	m := startModel(t, tokenRule("estimate: 1000"), func(w http.ResponseWriter, r *http.Request) {
		<-release
		answers(200, jsonType, usageOf(1000))(w, r)
	})
	statuses := make(chan int, 100)
	for range 100 {
		go func() {
			resp, err := m.client.Do(m.request(t.Context(), http.MethodPost, chat, "{}"))
			if err != nil {
				statuses <- 0
				return
			}
			resp.Body.Close()
			statuses <- resp.StatusCode
		}()
	}
	for range 90 {
		assert.Equal(t, 429, <-statuses)
	}
	assert.Equal(t, 10000, m.used("tokens"))
	close(release)
	for range 10 {
		assert.Equal(t, 200, <-statuses)
	}
	m.isSettled("tokens", 10000)
}

// TestARefusalTakesNothing (pitfall 2): all limits of a request hold tokens, or none does.
func TestARefusalTakesNothing(t *testing.T) {
	m := startModel(t, "{name: requests, key: global, rate: 1/h}, "+tokenRule("estimate: 100"), answers(200, jsonType, usageOf(60)))
	m.post(chat, "{}")
	m.isSettled("tokens", 60)
	resp, _ := m.post(chat, "{}")
	assert.Equal(t, 429, resp.StatusCode)
	assert.Equal(t, 60, m.used("tokens"))
	assert.Equal(t, 1, m.used("requests"))
}

// TestTheKeyWithTheLeast: if a key is always refused, the page shows it as the key with the least left. Other keys that
// were admitted later do not replace it.
func TestTheKeyWithTheLeast(t *testing.T) {
	m := startModel(t, "{name: tokens, key: header:X-Team, rate: 100/365d, tokens: {estimate: 50}}", answers(200, jsonType, usageOf(60)))
	ask := func(team string) int {
		r := m.request(t.Context(), http.MethodPost, chat, "{}")
		r.Header.Set("X-Team", team)
		resp, err := m.client.Do(r)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode
	}
	shown := m.current.Load().meters.Shown("tokens")
	settled := func() bool { return shown().Held == 0 }
	for _, team := range []string{"blue", "blue", "green"} {
		ask(team)
		require.Eventually(t, settled, 10*time.Second, time.Millisecond)
	}
	for range 5 {
		m.clock.advance(50 * time.Second)
		assert.Equal(t, 429, ask("blue"))
	}
	assert.Equal(t, uint64(40), shown().Tightest.Left, "blue's, of which 50 are needed")
	m.clock.advance(2 * time.Minute)
	assert.Nil(t, shown().Tightest)
}

// TestLimitBelowTheEstimate (pitfalls 3, 4): if the estimate is above the limit, the complete limit is held. So the
// first request passes, and a second request at the same time does not.
func TestLimitBelowTheEstimate(t *testing.T) {
	release := make(chan struct{})
	m := startModel(t, "{name: tokens, key: global, rate: 100/h, tokens: {estimate: 5000}}", func(w http.ResponseWriter, r *http.Request) {
		<-release
		answers(200, jsonType, usageOf(40))(w, r)
	})
	done := make(chan int, 1)
	go func() {
		resp, err := m.client.Do(m.request(t.Context(), http.MethodPost, chat, "{}"))
		if assert.NoError(t, err) {
			resp.Body.Close()
			done <- resp.StatusCode
		}
	}()
	m.isSettled("tokens", 100)
	resp, _ := m.post(chat, "{}")
	assert.Equal(t, 429, resp.StatusCode, "not free, and no wait")
	close(release)
	assert.Equal(t, 200, <-done)
	m.isSettled("tokens", 40)
}

// TestEstimates (pitfalls 5 to 10, 12, 40) checks how many tokens are held while a request is in progress.
func TestEstimates(t *testing.T) {
	held, m := 0, (*model)(nil)
	m = startModel(t, "{name: tokens, key: global, rate: 1000000/h, tokens: {}}", func(w http.ResponseWriter, r *http.Request) {
		held = m.used("tokens")
		answers(500, jsonType, "{}")(w, r)
	})
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{chat, `{"max_tokens":50}`, 50},
		{chat, `{"max_tokens":1,"max_completion_tokens":1000}`, 1000},
		{chat, `{"max_tokens":100,"n":4}`, 400},
		{chat, `{"max_tokens":-1}`, 1024},
		{chat, `{"max_tokens":999999999}`, 1000000},
		{chat, `{"messages":[{"content":"` + strings.Repeat("word ", 4000) + `"}],"max_tokens":50}`, 5050},
		{chat, strings.Repeat("no json ", 1000), 3024},
		{"/v1/responses", `{"input":"abcd","max_output_tokens":50}`, 50},
		{"/v1/embeddings", `{"input":"` + strings.Repeat("abcd", 1000) + `"}`, 1000},
		{"/v1/messages/batches", `{"requests":[{"params":{"max_tokens":70}},{"params":{"max_tokens":30}}]}`, 100},
	} {
		m.post(c.path, c.body)
		assert.InDelta(t, c.want, held, 30, c.body[:min(len(c.body), 50)])
		m.isSettled("tokens", 0)
	}
	assert.Equal(t, strings.Repeat("no json ", 1000), m.seen[6], "the body passes unchanged")
}

// TestWhatCostsNothing (pitfalls 13, 14): requests for a list of models or for a count of tokens cost nothing. The same
// is true of requests that the upstream refuses, and of requests that fail at the upstream.
func TestWhatCostsNothing(t *testing.T) {
	m := startModel(t, tokenRule(""), answers(200, jsonType, usageOf(500)))
	resp, err := m.client.Do(m.request(t.Context(), http.MethodGet, "/v1/models", ""))
	require.NoError(t, err)
	resp.Body.Close()
	assert.Empty(t, resp.Header.Get("RateLimit"))
	m.post("/v1/messages/count_tokens", `{"messages":[]}`)
	m.post("/v1beta/models/gemini-2.5-pro:countTokens", `{"contents":[]}`)
	assert.Equal(t, 0, m.used("tokens"))
	m.post("/v1beta/models/a;b:generateContent;:countTokens", `{}`)
	m.isSettled("tokens", 500)
	for _, status := range []int{400, 401, 404, 422, 429, 500, 503} {
		m.serve = answers(status, jsonType, `{"error":{"message":"no"}}`)
		resp, _ := m.post(chat, `{"model":"none"}`)
		assert.Equal(t, status, resp.StatusCode)
		m.isSettled("tokens", 500)
	}
	m.serve = answers(500, jsonType, usageOf(20))
	m.post(chat, "{}")
	m.isSettled("tokens", 520)
}

// TestUnreached: a request that reaches no upstream costs nothing.
func TestUnreached(t *testing.T) {
	s := start(t, "upstream: http://127.0.0.1:1\nrules: ["+tokenRule("")+"]\n")
	m := &model{running: s}
	resp, _ := m.post(chat, "{}")
	assert.Equal(t, 502, resp.StatusCode)
	m.isSettled("tokens", 0)
}

// TestAborts (pitfall 15): a client that disconnects pays, at whatever moment it does so. The setting abort of the rule
// says how much.
func TestAborts(t *testing.T) {
	for _, c := range []struct {
		abort  string
		before string // beginning of the stream, which then waits until the client disconnects
		after  string
		want   int
	}{
		{"keep", "", "", 500}, {"keep", someText, "", 500}, {"keep", someText + lastBytes, "", 100},
		{"delivered", "", "", 1}, {"delivered", someText, "", 4}, {"delivered", someText + lastBytes, "", 100},
		{"drain 1m", someText, lastBytes, 100}, {"drain 1m", someText, "", 500},
	} {
		began, left := make(chan struct{}), make(chan struct{}) // began: the client has received c.before
		m := startModel(t, tokenRule("estimate: 500, abort: "+c.abort), func(w http.ResponseWriter, r *http.Request) {
			if c.before != "" {
				w.Header().Set("Content-Type", sseType)
				_, _ = io.WriteString(w, c.before)
				_ = http.NewResponseController(w).Flush()
			} else {
				close(began)
			}
			if !strings.HasPrefix(c.abort, "drain") {
				<-r.Context().Done() // weir ends the request when the client disconnects
				return
			}
			<-left
			_, _ = io.WriteString(w, c.after)
		})
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if resp, err := m.client.Do(m.request(ctx, http.MethodPost, chat, `{"a":"b"}`)); err == nil {
				_, _ = io.ReadFull(resp.Body, make([]byte, len(c.before)))
				close(began)
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
		}()
		<-began
		if strings.HasSuffix(c.before, someText) {
			assert.Equal(t, 500, m.used("tokens"), "held")
		}
		leave()
		<-ended
		if c.after == lastBytes { // the rest is sent when weir has noticed that the client has gone
			assert.Eventually(t, func() bool { return m.traffic.inFlight.Load() == 1 }, time.Second, time.Millisecond)
		}
		close(left)
		m.isSettled("tokens", c.want)
		m.stop()
	}
}

// TestSettledBeforeTheEnd (pitfalls 16, 17): a usage is settled as soon as it arrives. No [DONE] need follow.
func TestSettledBeforeTheEnd(t *testing.T) {
	for _, end := range []string{"", endEvent} {
		release := make(chan struct{})
		m := startModel(t, tokenRule("estimate: 500"), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", sseType)
			_, _ = io.WriteString(w, someText+lastBytes+end)
			_ = http.NewResponseController(w).Flush()
			<-release
		})
		resp, err := m.client.Do(m.request(t.Context(), http.MethodPost, chat, "{}"))
		require.NoError(t, err)
		got := make([]byte, len(someText+lastBytes+end))
		_, err = io.ReadFull(resp.Body, got)
		require.NoError(t, err)
		assert.Equal(t, someText+lastBytes+end, string(got))
		assert.Equal(t, 100, m.used("tokens"), "settled before the client has it")
		close(release)
		_, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
		m.stop()
	}
}

// TestBrokenStream (pitfall 18): if a stream breaks off, the usage that it has reported so far is not its cost.
func TestBrokenStream(t *testing.T) {
	partial := "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1,\"total_tokens\":%d}}\n\n"
	for tokens, want := range map[int]int{6: 500, 600: 600} {
		m := startModel(t, tokenRule("estimate: 500"), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", sseType)
			fmt.Fprintf(w, partial, tokens)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		resp, err := m.client.Do(m.request(t.Context(), http.MethodPost, chat, "{}"))
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		assert.Error(t, err)
		resp.Body.Close()
		m.isSettled("tokens", want)
		m.stop()
	}
}

// TestNoUsage (pitfall 19) checks the cost of a stream that ends without a usage.
func TestNoUsage(t *testing.T) {
	for unknown, want := range map[string]int{"keep": 500, "delivered": 4, "free": 0} {
		for _, end := range []string{"", endEvent} {
			m := startModel(t, tokenRule("estimate: 500, unknown: "+unknown), answers(200, sseType, someText+end))
			m.post(chat, `{"a":"b"}`)
			m.isSettled("tokens", want)
			m.stop()
		}
	}
}

// TestAddedUsageIsHidden (pitfall 20): weir asks for the usage of a stream, and hides it from the client.
func TestAddedUsageIsHidden(t *testing.T) {
	stream := someText + someText + lastBytes + endEvent
	for body, wants := range map[string]bool{
		`{"stream":true}`: true, `{"stream":true,"stream_options":null}`: true, `{"stream":true,"stream_options":{"a":1}}`: true,
		`{"stream":true,"stream_options":{"include_usage":false}}`: true,
		`{"stream":true,"stream_options":{"include_usage":true}}`:  false, `{"stream":false}`: false,
	} {
		m := startModel(t, tokenRule("ask_usage: true"), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", sseType)
			for i := range len(stream) { // cuts the stream at every byte
				_, _ = io.WriteString(w, stream[i:i+1])
				_ = http.NewResponseController(w).Flush()
			}
		})
		_, got := m.post(chat, body)
		if wants {
			assert.Equal(t, someText+someText+endEvent, got, body)
			var sent struct {
				Stream        bool
				StreamOptions struct {
					IncludeUsage bool `json:"include_usage"`
				} `json:"stream_options"`
			}
			require.NoError(t, json.Unmarshal([]byte(m.seen[0]), &sent), m.seen[0])
			assert.True(t, sent.Stream && sent.StreamOptions.IncludeUsage, m.seen[0])
		} else {
			assert.Equal(t, stream, got, body)
			assert.Equal(t, body, m.seen[0])
		}
		m.isSettled("tokens", 100)
		m.stop()
	}
}

// TestCorpusThroughTheProxy (pitfalls 11, 21 to 27): every answer of the corpus passes unchanged, piece by piece, and
// its cost is settled.
func TestCorpusThroughTheProxy(t *testing.T) {
	m := startModel(t, "{name: tokens, key: global, rate: 10000/h, tokens: {estimate: none, unknown: free}}", nil)
	used := 0
	for _, f := range usage.Corpus() {
		body := f.Body
		for _, packed := range []bool{false, true} {
			m.serve = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", f.ContentType)
				out := body
				if packed {
					var b bytes.Buffer
					z := gzip.NewWriter(&b)
					_, _ = z.Write(body)
					_ = z.Close()
					out = b.Bytes()
					w.Header().Set("Content-Encoding", "gzip")
				}
				for len(out) > 0 {
					n := min(len(out), 97)
					_, _ = w.Write(out[:n])
					_ = http.NewResponseController(w).Flush()
					out = out[n:]
				}
			}
			_, got := m.post(f.Path, "{}") // the transport of the test decompresses the answer
			assert.Equal(t, string(body), got, f.File)
			if used += int(f.Reported.Total); f.Final || f.Reported.Total > 0 {
				m.isSettled("tokens", used)
			}
		}
	}
}

// TestSmallBodyLargeInput (pitfalls 11, 34): input tokens that are not in the body of the request are charged. If the
// key then owes tokens, the debt counts against later requests.
func TestSmallBodyLargeInput(t *testing.T) {
	m := startModel(t, tokenRule(""), answers(200, jsonType, `{"usage":{"input_tokens":50000,"output_tokens":10,"total_tokens":50010}}`))
	resp, _ := m.post("/v1/responses", `{"previous_response_id":"r1","input":"go on","max_output_tokens":10}`)
	assert.Equal(t, 200, resp.StatusCode)
	m.isSettled("tokens", 50010)
	resp, _ = m.post("/v1/responses", `{"input":"a","max_output_tokens":1}`)
	assert.Equal(t, 429, resp.StatusCode)
	m.clock.advance(3 * time.Hour)
	resp, _ = m.post("/v1/responses", `{"input":"a","max_output_tokens":1}`)
	assert.Equal(t, 429, resp.StatusCode, "40,010 tokens are owed, and 30,000 are back")
}

// TestHostileUsageIsNotTaken (pitfall 28): if the usage in an answer is impossible, the answer counts as one without a
// usage.
func TestHostileUsageIsNotTaken(t *testing.T) {
	for _, bad := range []string{"-600", `"2147483647"`, "9223372036854775807", "NaN", "1.5"} {
		for _, usage := range []string{`{"total_tokens":` + bad + `}`, `{"prompt_tokens":10,"completion_tokens":` + bad + `}`} {
			m := startModel(t, tokenRule("estimate: 500"), answers(200, jsonType, `{"usage":`+usage+`}`))
			m.post(chat, "{}")
			m.isSettled("tokens", 500)
			m.stop()
		}
	}
}

// TestOnce (pitfall 30): if an answer has two usages, it is settled once, by the larger usage. If a client sends a
// request again, this is a new request.
func TestOnce(t *testing.T) {
	for _, c := range [][3]int{{100, 100, 100}, {100, 150, 150}, {100, 50, 100}} {
		stream := "data: " + usageOf(c[0]) + "\n\ndata: " + usageOf(c[1]) + "\n\n" + endEvent
		m := startModel(t, tokenRule("estimate: 500"), answers(200, sseType, stream))
		m.post(chat, "{}")
		m.isSettled("tokens", c[2])
		m.post(chat, "{}")
		m.isSettled("tokens", 2*c[2])
		assert.Len(t, m.seen, 2)
		m.stop()
	}
}

// TestWindows (pitfalls 31, 32, 33): a hold may be settled in a later window than the window of its request. It then
// gives no tokens back to the later window, and does not extend that window.
func TestWindows(t *testing.T) {
	for _, actual := range []int{10, 500, 900} {
		release, began := make(chan struct{}), make(chan struct{})
		m := startModel(t, "{name: tokens, key: global, rate: 1000/h, algorithm: fixed-window, tokens: {estimate: 500}}", nil)
		m.serve = func(w http.ResponseWriter, r *http.Request) {
			close(began)
			<-release
			answers(200, jsonType, usageOf(actual))(w, r)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			resp, err := m.client.Do(m.request(t.Context(), http.MethodPost, chat, "{}"))
			if assert.NoError(t, err) {
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
		}()
		<-began
		m.clock.advance(time.Hour + time.Second)
		m.mu.Lock()
		m.serve = answers(200, jsonType, usageOf(300))
		m.mu.Unlock()
		m.post(chat, "{}")
		m.isSettled("tokens", 300)
		close(release)
		<-done
		m.isSettled("tokens", 300+max(actual-500, 0)) // the cost beyond the hold is charged when it is known
		m.clock.advance(time.Hour + time.Second)
		assert.Equal(t, 0, m.used("tokens"), "the window of the second request is over")
		m.stop()
	}
}

// TestRefusals (pitfall 38): a refusal has the form of the called API. It does not make the client retry at once.
func TestRefusals(t *testing.T) {
	for path, want := range map[string]string{
		chat:                               "error.message error.type error.param error.code",
		"/v1/messages":                     "type error.type error.message",
		"/v1beta/models/a:generateContent": "error.code error.message error.status",
		"/api/chat":                        "error",
		"/model/a/converse":                "message",
	} {
		m := startModel(t, "{name: tokens, key: global, rate: 10/h, response: {status: 403}, tokens: {estimate: 10, fields: openai}}", answers(200, jsonType, usageOf(90)))
		m.post(path, "{}")
		m.isSettled("tokens", 90)
		resp, body := m.post(path, "{}")
		assert.Equal(t, 403, resp.StatusCode)
		assert.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
		assert.NotEmpty(t, resp.Header.Get("Retry-After"))
		assert.Equal(t, `"tokens";q=10;qu="tokens";w=3600`, resp.Header.Get("RateLimit-Policy"))
		assert.Equal(t, "10 0", resp.Header.Get("X-Ratelimit-Limit-Tokens")+" "+resp.Header.Get("X-Ratelimit-Remaining-Tokens"))
		for _, keys := range strings.Fields(want) {
			var value any
			require.NoError(t, json.Unmarshal([]byte(body), &value))
			for _, key := range strings.Split(keys, ".") {
				object, _ := value.(map[string]any)
				assert.Contains(t, object, key, body)
				value = object[key]
			}
		}
		m.stop()
	}
}

// TestPlaces (pitfall 39): a stream is in flight until it ends, even if its cost is settled before.
func TestPlaces(t *testing.T) {
	release := make(chan struct{})
	m := startModel(t, "{name: streams, key: global, concurrency: 1}, "+tokenRule("estimate: 500"), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", sseType)
		_, _ = io.WriteString(w, lastBytes)
		_ = http.NewResponseController(w).Flush()
		<-release
	})
	resp, err := m.client.Do(m.request(t.Context(), http.MethodPost, chat, "{}"))
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.ReadFull(resp.Body, make([]byte, len(lastBytes)))
	require.NoError(t, err)
	assert.Equal(t, 100, m.used("tokens"))
	second, _ := m.post(chat, "{}")
	assert.Equal(t, 429, second.StatusCode)
	assert.Equal(t, 100, m.used("tokens"), "and what is refused holds nothing")
	close(release)
}

// TestPlainCosts: any answer can have a cost in its body, in a header or in a trailer.
func TestPlainCosts(t *testing.T) {
	for from, serve := range map[string]http.HandlerFunc{
		"json:meta.cost": answers(200, jsonType, `{"meta":{"cost":70}}`),
		"header:X-Cost":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Cost", "70") },
		"trailer:X-Cost": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Cost")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Cost", "70")
		},
	} {
		m := startModel(t, "{name: tokens, key: global, rate: 10000/h, cost: {estimate: 500, from: \""+from+"\"}}", serve)
		resp, _ := m.post("/any", "x")
		assert.Contains(t, resp.Header.Get("RateLimit"), `"tokens";r=9500;`)
		m.isSettled("tokens", 70)
		m.serve = answers(200, jsonType, `{}`)
		m.post("/any", "x")
		m.isSettled("tokens", 570)
		m.stop()
	}
}

// TestCostInAHeaderOfABrokenAnswer: if the client or the server breaks off an answer, the cost in its header is still
// charged.
func TestCostInAHeaderOfABrokenAnswer(t *testing.T) {
	for cost, want := range map[string]int{"700": 700, "70": 500, "-700": 500} {
		m := startModel(t, `{name: tokens, key: global, rate: 10000/h, cost: {estimate: 500, from: "header:X-Cost"}}`,
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Cost", cost)
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, "body")
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
		if resp, err := m.client.Do(m.request(t.Context(), http.MethodPost, "/any", "x")); err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			assert.Error(t, err)
		}
		m.isSettled("tokens", want)
		m.stop()
	}
}
