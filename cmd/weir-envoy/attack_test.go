package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// TestClientsThatStall: a client that does not begin a handshake or HTTP/2 is cut off. Other clients are answered
// meanwhile.
func TestClientsThatStall(t *testing.T) {
	ca := newAuthority(t)
	certificate, key := ca.sign("weir.test")
	settings := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	r := start(t, []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(settings))},
		"--runtime-root="+write(t, map[string]string{"a.yaml": file}), "--grpc-tls", "--grpc-certificate="+certificate,
		"--grpc-key="+key, "--grpc-connection-timeout=2s")
	var stalled []net.Conn
	for range 50 {
		silent, err := net.Dial("tcp", r.address())
		require.NoError(t, err)
		stalled = append(stalled, silent)
		shaken, err := tls.Dial("tcp", r.address(), settings)
		require.NoError(t, err)
		stalled = append(stalled, shaken)
	}
	assert.Equal(t, 2, r.left("day", "x"))
	for _, c := range stalled {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.Copy(io.Discard, c)
		assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "still open after a minute")
		c.Close()
	}
	assert.Equal(t, 1, r.left("day", "x"))
}

// TestLinesThatRequestsMakeUp: a value from a request may be part of a name in /stats. It cannot forge a line.
func TestLinesThatRequestsMakeUp(t *testing.T) {
	r := start(t, nil, "--runtime-root="+write(t, map[string]string{
		"a.yaml": strings.Replace(file, "- key: day", "- key: day\n    detailed_metric: true", 1)}))
	_, err := r.rls.ShouldRateLimit(context.Background(), request("d", "day", "x\nratelimit.service.forged: 1\nx", 1))
	require.NoError(t, err)
	_, body := r.get("debug-port", "/stats")
	assert.Contains(t, body, "forged")
	assert.NotContains(t, body, "\nratelimit.service.forged")
}

// TestPageOfTheProgram: the debug port also has the live page, with the settings of the flags.
func TestPageOfTheProgram(t *testing.T) {
	r := start(t, nil, "--runtime-root="+write(t, map[string]string{"a.yaml": file}), "--debug-hosts=Weir.test", "--debug-keys=full")
	for range 5 {
		r.left("day", "x")
	}
	for path, want := range map[string]string{
		"/": "<title>", "/page.js": "EventSource", "/rlconfig": "d.day", "/stats": "d.day.over_limit: 2",
		"/state.json": `"key":"day=x"`, "/metrics": `weir_requests_total{outcome="refused",rule="d.day"} 2`, "/readyz": "ready",
	} {
		code, body := r.get("debug-port", path)
		assert.Equal(t, 200, code, path)
		assert.Contains(t, body, want, path)
	}
	for host, want := range map[string]int{"weir.test": 200, "other.test": 403} {
		ask, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/state.json", r.ports["debug-port"]), nil)
		require.NoError(t, err)
		ask.Host = host
		answer, err := http.DefaultClient.Do(ask)
		require.NoError(t, err)
		answer.Body.Close()
		assert.Equal(t, want, answer.StatusCode, host)
	}
	code, _ := r.post("/key/reset", `{"rule":"d.day","parts":["x"]}`)
	assert.Equal(t, http.StatusForbidden, code, "without DEBUG_RESET")
}

func (r *running) post(path, form string) (status int, body string) {
	answer, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d%s", r.ports["debug-port"], path), "application/json",
		strings.NewReader(form))
	require.NoError(r.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(r.t, err)
	return answer.StatusCode, string(text)
}
