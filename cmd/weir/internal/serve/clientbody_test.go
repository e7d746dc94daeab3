package serve

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// A trickle is the connection of a client that sends a few bytes each time after a while.
type trickle struct {
	http.ResponseWriter
	deadline time.Time
	every    time.Duration
	bytes    int // each time
	times    int
}

func (c *trickle) SetReadDeadline(deadline time.Time) error { c.deadline = deadline; return nil }
func (c *trickle) Close() error                             { return nil }
func (c *trickle) Read(into []byte) (int, error) {
	if c.times == 0 {
		return 0, io.EOF
	}
	if !c.deadline.IsZero() && time.Until(c.deadline) < c.every {
		time.Sleep(max(time.Until(c.deadline), 0))
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(c.every)
	c.times--
	return copy(into, bytes.Repeat([]byte{'x'}, c.bytes)), nil
}

// TestSlowBodies: a body may be slow for ten seconds, and then must have come at the least rate.
func TestSlowBodies(t *testing.T) {
	for name, c := range map[string]struct {
		client  trickle
		slow    time.Duration // of the upstream, after each read
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
		"a slow upstream": {client: trickle{bytes: 1, times: 100}, slow: time.Minute, took: 100 * time.Minute},
		"read_timeout is shorter": {client: trickle{every: time.Second, bytes: 240, times: 100}, timeout: 5 * time.Second,
			took: 5 * time.Second, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				p := &pace{control: http.NewResponseController(&c.client), rate: 240}
				if c.timeout > 0 {
					p.timeout = begin.Add(c.timeout)
				}
				body := &clientBody{ReadCloser: &c.client, pace: p}
				var err error
				for into := make([]byte, 32<<10); err == nil; time.Sleep(c.slow) {
					_, err = body.Read(into)
				}
				assert.InDelta(t, (c.took + c.slow).Seconds(), time.Since(begin).Seconds(), paceStep.Seconds())
				if c.broken {
					assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
					assert.ErrorIs(t, body.err(), os.ErrDeadlineExceeded)
				} else {
					assert.ErrorIs(t, err, io.EOF)
					assert.NoError(t, body.err())
				}
				assert.Equal(t, p.timeout, c.client.deadline, "what follows the body is not cut off")
			})
		})
	}
}

// TestOnlyAnUpstreamWithHTTP2HasGRPC: to one without it the content type is no excuse for a slow body.
func TestOnlyAnUpstreamWithHTTP2HasGRPC(t *testing.T) {
	for _, grpc := range []bool{false, true} {
		p := &proxy{server: &config.Server{MinBodyRate: 240}, grpc: grpc}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.ProtoMajor, r.Header = 2, http.Header{"Content-Type": {"application/grpc"}}
		assert.Equal(t, grpc, p.pace(httptest.NewRecorder(), r) == nil)
	}
}
