package httplimit_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
)

func outgoing(m *httplimit.Middleware, next func(*http.Request) (*http.Response, error)) *http.Client {
	return &http.Client{Transport: m.RoundTripper(sends(next))}
}

type sends func(*http.Request) (*http.Response, error)

func (s sends) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func answer(status int, body io.ReadCloser) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: body}, nil
}

// A watched is a body that records whether it was closed.
type watched struct {
	io.Reader
	closed bool
}

func (w *watched) Close() error { w.closed = true; return nil }

// TestOutgoing: if the limits refuse a request, it is not sent. The error names the limit and the wait.
func TestOutgoing(t *testing.T) {
	asked := 0
	server := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; io.WriteString(w, "hello") }))
	clock := testclock.New()
	l := shared("api", clock.Limiter(t, engine.TokenBucket(engine.Per(1, time.Minute), 2)))
	client := &http.Client{Transport: one(t, l).RoundTripper(nil)}
	for range 2 {
		response, err := client.Get(server.URL)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(body))
		require.NoError(t, response.Body.Close())
	}
	body := &watched{Reader: strings.NewReader("x")}
	_, err := client.Post(server.URL, "text/plain", body)
	var refused *httplimit.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, httplimit.RefusedError{Limit: "api", RetryAfter: time.Minute}, *refused)
	assert.Equal(t, `httplimit: the limit "api" refuses the request: again after 1m0s`, refused.Error())
	assert.True(t, body.closed, "a transport closes the body, also with an error")
	assert.Equal(t, 2, asked)
	client.CloseIdleConnections()
}

// TestOutgoingWaits: a request waits for tokens until its context is done.
func TestOutgoingWaits(t *testing.T) {
	clock := testclock.New()
	l := shared("api", clock.Limiter(t, engine.TokenBucket(engine.PerSecond(1), 1)))
	l.MaxWait = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	pauses := 0
	client := outgoing(one(t, l, httplimit.Pause(func(ctx context.Context, d time.Duration) error {
		if pauses++; pauses == 3 {
			cancel()
			return ctx.Err()
		}
		return clock.Pause(ctx, d)
	})), func(*http.Request) (*http.Response, error) { return answer(200, http.NoBody) })
	get := func() error {
		r, err := http.NewRequestWithContext(ctx, "GET", "http://api.example/", nil)
		require.NoError(t, err)
		response, err := client.Do(r)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	for range 3 {
		require.NoError(t, get())
	}
	err := get()
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "the wait for the limits of the request ended")
	assert.Equal(t, 3, pauses)
}

func TestOutgoingHosts(t *testing.T) {
	l := httplimit.Limit{Limiter: testclock.New().Burst(t, 1), Key: httplimit.Host}
	client := outgoing(one(t, l), func(*http.Request) (*http.Response, error) { return answer(200, http.NoBody) })
	for _, c := range []struct {
		url     string
		allowed bool
	}{
		{"http://a.example/", true}, {"http://b.example/", true}, {"http://A.example:80/x", false}, {"http://a.example/y", false},
	} {
		response, err := client.Get(c.url)
		assert.Equal(t, c.allowed, err == nil, c.url)
		if err == nil {
			response.Body.Close()
		}
	}
}

// TestOutgoingInFlight: a request is in flight until its response was read, is closed, or breaks off, or until
// RoundTrip returns without a response.
func TestOutgoingInFlight(t *testing.T) {
	for name, c := range map[string]struct {
		body func() io.ReadCloser
		end  func(io.ReadCloser)
	}{
		"read": {
			func() io.ReadCloser { return io.NopCloser(strings.NewReader("hello")) },
			func(b io.ReadCloser) { _, err := io.ReadAll(b); assert.NoError(t, err) },
		},
		"closed": {
			func() io.ReadCloser { return io.NopCloser(strings.NewReader("hello")) },
			func(b io.ReadCloser) { assert.NoError(t, b.Close()); assert.NoError(t, b.Close()) },
		},
		"broken off": {
			func() io.ReadCloser { return io.NopCloser(io.MultiReader(strings.NewReader("he"), broken{})) },
			func(b io.ReadCloser) { _, err := io.ReadAll(b); assert.Error(t, err) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := shared("in flight", testclock.New().Limiter(t, engine.Concurrency(1, time.Hour)))
			client := outgoing(one(t, l), func(*http.Request) (*http.Response, error) { return answer(200, c.body()) })
			response, err := client.Get("http://a.example/")
			require.NoError(t, err)
			_, err = client.Get("http://a.example/")
			assert.ErrorContains(t, err, `the limit "in flight" refuses the request`)
			c.end(response.Body)
			response, err = client.Get("http://a.example/")
			require.NoError(t, err)
			c.end(response.Body)
		})
	}
	t.Run("no response", func(t *testing.T) {
		l := shared("in flight", testclock.New().Limiter(t, engine.Concurrency(1, time.Hour)))
		client := outgoing(one(t, l), func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") })
		for range 3 {
			_, err := client.Get("http://a.example/")
			assert.ErrorContains(t, err, "no route")
		}
	})
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestOutgoingRefund: in this test, successes give their token back. Failures and responses that break off give nothing
// back.
func TestOutgoingRefund(t *testing.T) {
	for _, c := range []struct {
		status int
		body   io.Reader
		left   uint64
	}{
		{200, strings.NewReader("x"), 9}, {503, strings.NewReader("x"), 8}, {200, broken{}, 8},
	} {
		m, left := failuresOnly(t)
		response, err := outgoing(m, func(*http.Request) (*http.Response, error) { return answer(c.status, io.NopCloser(c.body)) }).
			Get("http://a.example/")
		require.NoError(t, err)
		_, _ = io.ReadAll(response.Body) // one of the bodies breaks off
		require.NoError(t, response.Body.Close())
		assert.Equal(t, c.left, left())
	}
}

// TestOutgoingUpgrade: after an upgrade to another protocol, the connection can be written to.
func TestOutgoingUpgrade(t *testing.T) {
	server := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := bufio.NewReader(conn).ReadString('\n')
		io.WriteString(conn, line)
	}))
	l := shared("in flight", testclock.New().Limiter(t, engine.Concurrency(1, time.Hour)))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest("GET", server.URL, nil)
	require.NoError(t, err)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	response, err := one(t, l).RoundTripper(transport).RoundTrip(r)
	require.NoError(t, err)
	conn, ok := response.Body.(io.ReadWriteCloser)
	require.True(t, ok)
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "hello\n", line)
	require.NoError(t, conn.Close())
}
