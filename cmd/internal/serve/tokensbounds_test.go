package serve

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exact returns a server that reads a request exactly as OpenAI's API does. Each key has one spelling. If several
// members have the same name, the last one counts. Its answer has as many tokens as the request permits, or 5,000 if
// there is no bound. It adds these tokens to served.
func exact(seen func() string, served *atomic.Int64, then func(*http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := seen()
		var q struct{ keys, options map[string]json.RawMessage }
		_ = json.Unmarshal([]byte(body), &q.keys)
		_ = json.Unmarshal(q.keys["stream_options"], &q.options)
		tokens := 5000
		for _, name := range []string{"max_tokens", "max_completion_tokens"} {
			if n, err := strconv.Atoi(string(q.keys[name])); err == nil && n > 0 {
				tokens = n
			}
		}
		served.Add(int64(tokens))
		w.Header().Set("Content-Type", sseType)
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}\n\n", strings.Repeat("word", tokens))
		_ = http.NewResponseController(w).Flush()
		if then != nil {
			then(r)
		}
		if string(q.options["include_usage"]) == "true" {
			fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n", tokens, tokens+1)
		}
		_, _ = io.WriteString(w, endEvent)
	}
}

func startExact(t *testing.T, rules string, served *atomic.Int64, then func(*http.Request)) *model {
	m := startModel(t, rules, nil)
	m.serve = exact(func() string {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.seen[len(m.seen)-1]
	}, served, then)
	return m
}

// ignored has members of a body that look like a bound of 1 token. Servers of OpenAI's API ignore them.
var ignored = []string{
	`"MAX_TOKENS":1`, `"num_predict":1`, `"max_new_tokens":1`, `"options":{"num_predict":1}`, `"max_output_tokens":1`,
	`"generationConfig":{"maxOutputTokens":1}`, `"parameters":{"max_new_tokens":1}`, `"inferenceConfig":{"maxTokens":1}`,
	`"max_tokens":1,"max_tokens":null`, `"max_tokens":null,"num_predict":1`, `"max_tokens":"1"`,
	`"requests":[{"params":{"max_tokens":1}},{"params":{"max_tokens":1}}]`,
}

// TestIgnoredBounds: if the server ignores a bound in a request, the bound does not lower the held tokens.
func TestIgnoredBounds(t *testing.T) {
	held, m := 0, (*model)(nil)
	m = startModel(t, tokenRule("estimate: worst, ask_usage: true, clamp: true, api: openai"), func(w http.ResponseWriter, _ *http.Request) {
		held = m.used("tokens")
		answers(500, jsonType, "{}")(w, nil)
	})
	for _, body := range ignored {
		m.post(chat, `{"messages":[],`+body+`}`)
		assert.InDelta(t, 1024, held, 40, body)
		m.isSettled("tokens", 0)
	}
	for path, body := range map[string]string{
		"/v1/responses": `{"max_tokens":1}`, "/v1/completions": `{"max_completion_tokens":1}`, "/v1/unknown": `{"max_tokens":1}`,
		"/v1/messages": `{"max_tokens":1}`, // the rule says which API the path belongs to
	} {
		m.post(path, body)
		assert.InDelta(t, 1024, held, 40, path)
		m.isSettled("tokens", 0)
	}
}

// TestUncertainEndpoints: a path may name several endpoints, or name another one in some reading. Then no bound counts,
// and the request is not one for embeddings. A name of a model is no endpoint.
func TestUncertainEndpoints(t *testing.T) {
	held, m := 0, (*model)(nil)
	m = startModel(t, tokenRule("estimate: worst, clamp: true"), func(w http.ResponseWriter, _ *http.Request) {
		held = m.used("tokens")
		answers(500, jsonType, "{}")(w, nil)
	})
	for path, isCertain := range map[string]bool{
		"/v1/embeddings": true, "/openai/deployments/chat/embeddings": true, "/v1beta/models/embed:embedContent": true,
		"/openai/deployments/messages/chat/completions": true, "//v1/chat/completions": true, "//chat/completions": false, "///x;y" + chat: false, "//v1/chat/completions%3f/embeddings": false,
		"/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fa.b/converse": true,
		"/model/a%2F..%2F..%2Fv1%2Fmessages%2F/converse":                                false, "/model/a%2Finvoke/converse": false,
		"/openai/deployments/chat/completions": false, "/v1/models/chat/completions/embeddings": false,
		"/generate_stream/embeddings": false,
		chat + "%3f/embeddings":       false, chat + "%23/embeddings": false, chat + "%00/embeddings": false,
		chat + "/embeddings": false, "/v1beta/models/a:generateContent%3f:embedContent": false, "/v1/messages%3f/api/embed": false,
		chat + "%3f/responses": false, chat + "/responses": false, "/v1/Messages/completions": false,
		"/api/chat/completions/embeddings": false,
	} {
		m.post(path, `{"max_tokens":1,"max_completion_tokens":1,"max_output_tokens":1,"inferenceConfig":{"maxTokens":1}}`)
		assert.Equal(t, isCertain, held < 1024, path)
		m.isSettled("tokens", 0)
	}
}

// TestIgnoredBoundsAreClamped: a request has a bound that the server ignores. Its answer is still cut to the tokens
// left.
func TestIgnoredBoundsAreClamped(t *testing.T) {
	for _, body := range ignored {
		var served atomic.Int64
		m := startExact(t, tokenRule("ask_usage: true, clamp: true, api: openai"), &served, nil)
		m.post(chat, `{"stream":true,"max_tokens":9499}`)
		m.isSettled("tokens", 9500)
		resp, _ := m.post(chat, `{"messages":[],"stream":true,`+body+`}`)
		assert.Equal(t, 200, resp.StatusCode)
		assert.Greater(t, served.Load(), int64(9499), body)
		assert.LessOrEqual(t, served.Load(), int64(10_000), m.seen[len(m.seen)-1])
		m.isSettled("tokens", int(served.Load())+2)
		m.stop()
	}
}

// TestKeptIsWhatCame: a client that disconnects pays for what it has received, if this is more than the held tokens.
// The same is true if the answer has no usage.
func TestKeptIsWhatCame(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		var served atomic.Int64
		m := startExact(t, tokenRule("estimate: 100, unknown: keep"), &served, func(r *http.Request) {
			if leaves {
				<-r.Context().Done()
			}
		})
		ctx, leave := context.WithCancel(t.Context())
		resp, err := m.client.Do(m.request(ctx, http.MethodPost, chat, `{"stream":true}`))
		require.NoError(t, err)
		_, err = io.ReadFull(resp.Body, make([]byte, 4*5000))
		require.NoError(t, err)
		if leaves {
			leave()
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		leave()
		m.isSettled("tokens", 5002) // "stream" is two tokens
		m.stop()
	}
}

// TestAskedInSpite: weir asks for the usage of a stream even if the client asks for none. If weir cannot change the
// body, the received text counts.
func TestAskedInSpite(t *testing.T) {
	var served atomic.Int64
	m := startExact(t, tokenRule("estimate: none, unknown: free, ask_usage: true"), &served, nil)
	used := 0
	send := func(path, body, encoding string) {
		r := m.request(t.Context(), http.MethodPost, path, body)
		if encoding != "" {
			r.Header["Content-Encoding"] = []string{encoding}
		}
		resp, err := m.client.Do(r)
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
		assert.NotContains(t, string(got), "usage", "the client has not asked for it")
		used += 101
		m.isSettled("tokens", used)
		sent := m.seen[len(m.seen)-1]
		assert.True(t, json.Valid([]byte(sent)), sent)
	}
	for _, body := range []string{
		`"stream":true`, `"stream":1`, `"stream":"true"`, `"STREAM":true`, `"stream":true,"stream":false`,
		`"stream":true,"Stream_Options":{"Include_Usage":true}`, `"stream":true,"stream_options":{"INCLUDE_USAGE":true}`,
		`"stream":true,"stream_options":{"include_usage":true},"stream_options":null`,
		`"stream":true,"stream_options":{"include_usage":true,"include_usage":false}`,
		`"stream":true,"stream_options":{"include_usage":"true"}`, `"stream":true,"stream_options":7`,
	} {
		send(chat, `{"max_tokens":100,`+body+`}`, "")
	}
	body := `{"max_tokens":100,"stream":true}`
	// A server may ignore the encoding.
	for _, encoding := range []string{"identity", "Identity, identity", "gzip", "unknown"} {
		send(chat, body, encoding)
	}
	for _, path := range []string{
		"/v1/chat/completions/", "/v1/Chat/COMPLETIONS", "/v1/chat/completions;a=b", "/v1/chat//completions/x/..",
		"/v1/messages/../chat/completions", "/model/a/../../v1/chat/completions", "/v1/chat/%2563ompletions",
	} {
		send(path, body, "")
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, body)
	require.NoError(t, z.Close())
	for _, encoding := range []string{"gzip", "identity, gzip", "X-GZIP"} {
		send(chat, packed.String(), encoding)
	}
}
