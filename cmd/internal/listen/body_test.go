package listen

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/weir-go/weir/cmd/internal/pipes"
)

// A trickle is a connection on which bytes arrive with pauses.
type trickle struct {
	http.ResponseWriter
	deadline time.Time
	first    int // bytes that come at once
	every    time.Duration
	bytes    int // bytes after each pause
	times    int
	last     time.Duration // pause before the end
}

func (c *trickle) SetReadDeadline(deadline time.Time) error { c.deadline = deadline; return nil }
func (c *trickle) Close() error                             { return nil }
func (c *trickle) Read(into []byte) (int, error) {
	if n := min(c.first, len(into)); n > 0 {
		c.first -= n
		return n, nil
	}
	wait := c.every
	if c.times == 0 {
		wait = c.last
	}
	if !c.deadline.IsZero() && time.Until(c.deadline) < wait {
		time.Sleep(max(time.Until(c.deadline), 0))
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(wait)
	if c.times == 0 {
		return 0, io.EOF
	}
	c.times--
	return copy(into, bytes.Repeat([]byte{'x'}, c.bytes)), nil
}

// TestSlowBodies: after ten seconds, all bytes of a body must have arrived at the minimum rate.
func TestSlowBodies(t *testing.T) {
	for name, c := range map[string]struct {
		client  trickle
		slow    time.Duration // pause of the upstream after each read
		timeout time.Duration
		took    time.Duration
		broken  bool
	}{
		"a byte a second": {client: trickle{every: time.Second, bytes: 1, times: 100}, took: 10 * time.Second,
			broken: true},
		"nothing at all": {client: trickle{every: time.Hour, bytes: 1, times: 1}, took: 10 * time.Second,
			broken: true},
		"fast enough": {client: trickle{every: time.Second, bytes: 240, times: 100}, took: 100 * time.Second},
		"half of it": {client: trickle{every: time.Second, bytes: 120, times: 100}, took: 20 * time.Second,
			broken: true},
		"short": {client: trickle{every: time.Second, bytes: 1, times: 8}, took: 8 * time.Second},
		"in one go, then nothing": {client: trickle{every: 50 * time.Second, bytes: 12000, times: 1}, took: 10 * time.Second,
			broken: true},
		"fast, then nothing for two minutes": {client: trickle{every: 9 * time.Second, bytes: 100_000, times: 1,
			last: 2 * time.Minute}, took: 69 * time.Second, broken: true},
		"fast, then nothing for half a minute": {client: trickle{every: 9 * time.Second, bytes: 100_000, times: 1,
			last: 30 * time.Second}, took: 39 * time.Second},
		"fast, then a byte now and then": {client: trickle{first: 8 << 20, every: 9 * time.Second, bytes: 1, times: 100},
			took: time.Minute, broken: true},
		"in bursts": {client: trickle{first: 8 << 20, every: 55 * time.Second, bytes: 14_000, times: 20},
			took: 20 * 55 * time.Second},
		"a slow upstream": {client: trickle{bytes: 1, times: 100}, slow: time.Minute, took: 100 * time.Minute},
		"read_timeout is shorter": {client: trickle{every: time.Second, bytes: 240, times: 100}, timeout: 5 * time.Second,
			took: 5 * time.Second, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				p := pace{control: http.NewResponseController(&c.client), rate: 240, credit: paceGrace}
				if c.timeout > 0 {
					p.timeout = begin.Add(c.timeout)
				}
				body := &Body{ReadCloser: &c.client, pace: p}
				var err error
				for into := make([]byte, 32<<10); err == nil; time.Sleep(c.slow) {
					_, err = body.Read(into)
				}
				assert.InDelta(t, (c.took + c.slow).Seconds(), time.Since(begin).Seconds(), paceStep.Seconds())
				if c.broken {
					assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
					assert.False(t, c.client.deadline.After(time.Now()), "nothing waits for the rest")
				} else {
					assert.ErrorIs(t, err, io.EOF)
					assert.Zero(t, c.client.deadline, "what follows the body is not cut off")
				}
			})
		})
	}
}

// TestABodyThatIsNotReadHoldsNoConnection: net/http reads a part of an unread body before the answer. It also reads
// after the answer to a body that was too slow. In both cases the connection ends.
func TestABodyThatIsNotReadHoldsNoConnection(t *testing.T) {
	for name, read := range map[string]bool{"refused": false, "too slow": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, conn := net.Pipe()
				defer client.Close()
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					NewBody(w, r, 240, 0)
					if read {
						_, err := io.ReadAll(r.Body)
						assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
					}
					w.WriteHeader(http.StatusTooManyRequests)
				})}
				defer server.Close()
				go server.Serve(pipes.Listener(conn)) // returns when the server is closed
				begin := time.Now()
				_, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
				assert.NoError(t, err)
				_ = client.SetReadDeadline(begin.Add(time.Hour))
				answer, err := io.ReadAll(client)
				assert.NoError(t, err, "the server closes the connection")
				assert.Contains(t, string(answer), "HTTP/1.1 429 ")
				assert.InDelta(t, paceGrace.Seconds(), time.Since(begin).Seconds(), 1)
			})
		})
	}
}

// TestReadTimeoutEndsWithTheBody: an answer may take longer than read_timeout. If the deadline stayed after the body,
// net/http would treat it as the end of the connection.
func TestReadTimeoutEndsWithTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		defer client.Close()
		const timeout = 5 * time.Second
		server := &http.Server{ReadTimeout: timeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			NewBody(w, r, 240, timeout)
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			time.Sleep(time.Minute)
			assert.NoError(t, r.Context().Err(), "the client is there")
			_, _ = w.Write(body)
		})}
		defer server.Close()
		go server.Serve(pipes.Listener(conn)) // returns when the server is closed
		_, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
		assert.NoError(t, err)
		answer, err := io.ReadAll(client)
		assert.NoError(t, err)
		assert.Contains(t, string(answer), "HTTP/1.1 200 OK")
		assert.Contains(t, string(answer), "\r\n\r\nhello")
	})
}
