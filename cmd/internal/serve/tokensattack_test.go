package serve

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCancelingCosts: a client that cancels its requests pays for each. In the end it is refused.
func TestCancelingCosts(t *testing.T) {
	came := make(chan struct{}, 100)
	m := startModel(t, tokenRule("estimate: 1000"), func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		<-r.Context().Done()
	})
	for i := range 10 {
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if resp, err := m.client.Do(m.request(ctx, http.MethodPost, chat, "{}")); err == nil {
				resp.Body.Close()
			}
		}()
		<-came
		leave()
		<-ended
		m.isSettled("tokens", 1000*(i+1))
	}
	resp, _ := m.post(chat, "{}")
	assert.Equal(t, 429, resp.StatusCode)
	assert.Empty(t, came)
}

// TestModelsThatAreNotThere: a request for an unknown model costs nothing, and no cost is learned from it. While it is
// in progress, tokens are held for it.
func TestModelsThatAreNotThere(t *testing.T) {
	m := startModel(t, tokenRule("estimate: learned, default_output: 100"), answers(404, jsonType, `{"error":{}}`))
	for i := range 300 {
		resp, _ := m.post(chat, fmt.Sprintf(`{"model":"made-up-%d"}`, i))
		require.Equal(t, 404, resp.StatusCode)
	}
	m.isSettled("tokens", 0)
	held := 0
	m.serve = func(w http.ResponseWriter, r *http.Request) {
		held = m.used("tokens")
		answers(200, jsonType, usageOf(10))(w, r)
	}
	m.post(chat, `{"model":"tiny"}`)
	assert.InDelta(t, 103, held, 3, "the worst, not what made-up models have cost")
	m.isSettled("tokens", 10)
}

// TestNoReader: if a client does not read a stream, send_timeout ends the stream. The cost is the larger number of the
// held tokens and the sent tokens.
func TestNoReader(t *testing.T) {
	ended, sent := make(chan struct{}), 0
	rule := "{name: tokens, key: global, rate: 1000000000/h, tokens: {estimate: 500}}"
	m := startModel(t, rule, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		w.Header().Set("Content-Type", sseType)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat(someText, 100)); err != nil {
				return
			}
			sent += 100 * len("twelve bytes")
		}
	})
	upstream := m.current.Load().file.Upstream.Targets[0].URL.String()
	m.change("server: {send_timeout: 1s}\nupstream: " + upstream + "\nrules: [" + rule + "]\n")
	m.dial("POST " + chat + " HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n{\"stream\":true}")
	<-ended
	held := m.current.Load().meters.Shown("tokens")
	assert.Eventually(t, func() bool { return held().Held == 0 }, 10*time.Second, time.Millisecond)
	assert.Greater(t, m.used("tokens"), 500)
	assert.LessOrEqual(t, m.used("tokens"), sent/4+1300, "and what it was about to send")
}

// TestGiantLine: a line of megabytes passes unchanged. The usage after this line is read.
func TestGiantLine(t *testing.T) {
	stream := "data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("long ", 1<<20) + "\"}}]}\n\n" + lastBytes + endEvent
	for _, rule := range []string{"", "ask_usage: true"} {
		m := startModel(t, tokenRule(rule), answers(200, sseType, stream))
		_, got := m.post(chat, `{"stream":true}`)
		want := stream
		if rule != "" {
			want = strings.Replace(stream, lastBytes, "", 1)
		}
		assert.True(t, want == got, "the stream passes unchanged")
		m.isSettled("tokens", 100)
		m.stop()
	}
}

// TestLargeBodies: if a body is longer than max_body, the rest counts by its length. A compressed body is decompressed
// only for the estimate, and passed on as it is.
func TestLargeBodies(t *testing.T) {
	held, m := 0, (*model)(nil)
	m = startModel(t, "{name: tokens, key: global, rate: 1000000/h, tokens: {max_body: 64KiB}}", func(w http.ResponseWriter, r *http.Request) {
		held = m.used("tokens")
		answers(500, jsonType, "{}")(w, r)
	})
	large := `{"max_tokens":10,"prompt":"` + strings.Repeat("word", 100_000) + `"}`
	m.post(chat, large)
	assert.True(t, large == m.seen[0], "the body passes unchanged")
	assert.InDelta(t, 101_024, held, 20, "what was not read may have another bound")
	small := `{"max_tokens":10,"prompt":"` + strings.Repeat("word", 1000) + `"}`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, small)
	_ = z.Close()
	r := m.request(t.Context(), http.MethodPost, chat, packed.String())
	r.Header.Set("Content-Encoding", "gzip")
	resp, err := m.client.Do(r)
	require.NoError(t, err)
	resp.Body.Close()
	assert.True(t, packed.String() == m.seen[1], "and so does a compressed one")
	assert.InDelta(t, 1010, held, 20)
}

// TestAnotherMethodCosts: a GET may call a model if it has a body or opens a WebSocket. A WebSocket costs the held
// tokens.
func TestAnotherMethodCosts(t *testing.T) {
	m := startModel(t, tokenRule(""), answers(200, jsonType, usageOf(300)))
	for i, method := range []string{http.MethodGet, http.MethodDelete, http.MethodOptions} {
		resp, err := m.client.Do(m.request(t.Context(), method, chat, "{}"))
		require.NoError(t, err)
		resp.Body.Close()
		m.isSettled("tokens", 300*(i+1))
	}
	upstream, _ := slowly(t)
	s := &model{running: start(t, "admin: 127.0.0.1:0\nupstream: "+upstream+"\nrules: ["+tokenRule("")+"]\n")}
	conn := s.dial("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "hello\n", line)
	hold := s.used("tokens")
	assert.Positive(t, hold)
	require.NoError(t, conn.Close())
	assert.Eventually(t, func() bool {
		return strings.Contains(s.metrics(), `weir_tokens_requests_total{by="kept",rule="tokens"} 1`)
	}, 10*time.Second, time.Millisecond)
	assert.Equal(t, hold, s.used("tokens"))
}
