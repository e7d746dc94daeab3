package serve

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A hangUp is an upstream. While the field closes is set, it closes the connection after a request instead of
// answering.
type hangUp struct {
	url      string
	closes   atomic.Bool
	executed atomic.Int64
	last     atomic.Pointer[http.Request]
	together sync.WaitGroup // requests that the upstream answers only when all of them have arrived
}

func newHangUp(t *testing.T) *hangUp {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	c := &hangUp{url: "http://" + listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return c
}

func (c *hangUp) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		c.last.Store(r)
		if c.closes.Load() {
			c.executed.Add(1)
			return
		}
		c.together.Done()
		c.together.Wait()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
}

func (c *hangUp) keep(s *running, n int) {
	c.closes.Store(false)
	c.together.Add(n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() { assert.Equal(s.t, 200, s.get("/").status) })
	}
	all.Wait()
	c.closes.Store(true)
	c.executed.Store(0)
}

// TestOneTokenOneExecution: a kept connection is closed without an answer. A request is then sent at most once more. If
// its method may change something, it is not sent again, whatever the client writes.
func TestOneTokenOneExecution(t *testing.T) {
	upstream := newHangUp(t)
	for _, servers := range []string{upstream.url, "[\"" + upstream.url + "\", \"" + upstream.url + "/b\"]"} {
		s := start(t, administered+"upstream: "+servers+many)
		retries := 0
		for _, test := range []struct {
			method, body, field string
			most                int64
		}{
			{"GET", "", "Idempotency-Key", 2},
			{"HEAD", "", "", 2},
			{"OPTIONS", "", "", 2},
			{"GET", "x", "Idempotency-Key", 1},
			{"POST", "", "Idempotency-Key", 1},
			{"POST", "", "X-Idempotency-Key", 1},
			{"PUT", "", "Idempotency-Key", 1},
			{"DELETE", "", "X-Idempotency-Key", 1},
			{"POST", "x", "Idempotency-Key", 1},
		} {
			upstream.keep(s, 10)
			r, err := http.NewRequest(test.method, s.URL()+"/", bytes.NewBufferString(test.body))
			require.NoError(t, err)
			if test.field != "" {
				r.Header.Set(test.field, "k")
			}
			answer, err := s.client.Do(r)
			require.NoError(t, err)
			answer.Body.Close()
			assert.Equal(t, 502, answer.StatusCode)
			assert.Equal(t, test.most, upstream.executed.Load(), "%+v", test)
			retries += int(test.most) - 1
			assert.Equal(t, fmt.Sprint(retries), s.metric("weir_upstream_retries_total"))
			got := upstream.last.Load()
			assert.Equal(t, test.method, got.Method)
			if test.field != "" {
				assert.Equal(t, "k", got.Header.Get(test.field), "it is passed on")
			}
			assert.EqualValues(t, len(test.body), got.ContentLength, "%+v: no chunks", test)
			assert.Empty(t, got.TransferEncoding)
		}
	}
}

// TestAServerThatComesBack: if a kept connection to the upstream is lost, the client does not notice this.
func TestAServerThatComesBack(t *testing.T) {
	upstream := newHangUp(t)
	s := start(t, administered+"upstream: "+upstream.url+many)
	upstream.keep(s, 1)
	done := make(chan int)
	upstream.together.Add(1)
	go func() { done <- s.get("/").status }()
	for upstream.executed.Load() == 0 { // the kept connection has received the request, and is closed
		continue
	}
	upstream.closes.Store(false)
	status := <-done
	if status != 200 { // if the second attempt came too early
		assert.Equal(t, 502, status)
		assert.EqualValues(t, 2, upstream.executed.Load())
	}
	assert.Equal(t, "1", s.metric("weir_upstream_retries_total"))
}

// resets starts an HTTP/2 server. It ends its first answerAfter streams with the error code, and answers all later
// streams. The result streams counts all streams.
func resets(t *testing.T, code http2.ErrCode, answerAfter int64) (url string, streams *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	streams = new(atomic.Int64)
	serve := func(conn net.Conn) {
		defer conn.Close()
		_, _ = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
		frames := http2.NewFramer(conn, conn)
		_ = frames.WriteSettings()
		for {
			frame, err := frames.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = frames.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				if streams.Add(1) <= answerAfter {
					_ = frames.WriteRSTStream(frame.StreamID, code)
					continue
				}
				var block bytes.Buffer
				_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
				_ = frames.WriteHeaders(http2.HeadersFrameParam{
					StreamID: frame.StreamID, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true,
				})
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			// When a stream has just been reset, its connection is not idle yet. It stays in the pool until its idle
			// timeout.
			t.Cleanup(func() { conn.Close() })
			go serve(conn)
		}
	}()
	return "http://" + listener.Addr().String(), streams
}

// TestOneTokenOneExecutionOverHTTP2: if a stream is reset, the request may have been executed. Only if the server
// refused the stream, the request was not executed.
func TestOneTokenOneExecutionOverHTTP2(t *testing.T) {
	for _, test := range []struct {
		method, body string
		code         http2.ErrCode
		resets, most int64
		status       int
	}{
		// net/http tries another connection, and calls GetBody once more.
		{"GET", "", http2.ErrCodeProtocol, 100, 1, 502},
		{"POST", "", http2.ErrCodeProtocol, 100, 1, 502},
		{"DELETE", "", http2.ErrCodeProtocol, 100, 1, 502},
		{"POST", "x", http2.ErrCodeProtocol, 100, 1, 502},
		{"GET", "", http2.ErrCodeRefusedStream, 1, 2, 200},
		{"POST", "", http2.ErrCodeRefusedStream, 1, 2, 200},
		{"POST", "", http2.ErrCodeRefusedStream, 100, 2, 502},
		{"DELETE", "", http2.ErrCodeRefusedStream, 1, 2, 200},
	} {
		url, streams := resets(t, test.code, test.resets)
		s := start(t, administered+"upstream: {url: \""+url+"\", h2c: true}"+many)
		r, err := http.NewRequest(test.method, s.URL()+"/", bytes.NewBufferString(test.body))
		require.NoError(t, err)
		r.Header.Set("Idempotency-Key", "k")
		answer, err := s.client.Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		assert.Equal(t, test.status, answer.StatusCode, "%+v", test)
		assert.Equal(t, test.most, streams.Load(), "%+v", test)
		if test.code == http2.ErrCodeRefusedStream {
			assert.Equal(t, fmt.Sprint(test.most-1), s.metric("weir_upstream_retries_total"), "%+v", test)
		}
	}
}
