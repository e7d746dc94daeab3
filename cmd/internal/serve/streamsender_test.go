package serve

import (
	"io"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/weir-go/weir/cmd/internal/config"
)

// TestAShutWindowEndsTheStream: an answer that the client of HTTP/2 does not take frees its place and the connection to
// the upstream, whether it is long or fits into a buffer. Other streams of the connection stay.
func TestAShutWindowEndsTheStream(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"long": func(w http.ResponseWriter, _ *http.Request) {
			for chunk := make([]byte, 1<<20); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
		"short": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "more than the window") },
		"flushed": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "more than the window")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, "listen: {address: \"127.0.0.1:0\", h2c: true}\nserver: {send_timeout: 100ms}\nupstream: "+newUpstream(t, answer)+"\n"+one)
			frames, conn := s.streamWith([]http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 3}}, true,
				":method", "GET", ":scheme", "http", ":authority", "x", ":path", "/")
			defer conn.Close()
			for {
				frame, err := frames.ReadFrame()
				require.NoError(t, err)
				if _, is := frame.(*http2.RSTStreamFrame); is {
					break
				}
			}
			require.Eventually(t, func() bool { return s.traffic.inFlight.Load() == 0 }, time.Minute, time.Millisecond)
			assert.EqualValues(t, 1, s.connections[clients].open.Load())
		})
	}
}

// slowStream takes a while for each write, and fails when its deadline is over.
type slowStream struct {
	http.ResponseWriter
	takes []time.Duration // for one write after the other; the last one for all that follow
	reset chan struct{}
}

func (w *slowStream) Write(p []byte) (int, error) {
	takes := w.takes[0]
	if len(w.takes) > 1 {
		w.takes = w.takes[1:]
	}
	select {
	case <-time.After(takes):
		return len(p), nil
	case <-w.reset:
		return 0, os.ErrDeadlineExceeded
	}
}

func (w *slowStream) SetWriteDeadline(t time.Time) error {
	if t.Before(time.Now()) {
		close(w.reset)
	}
	return nil
}

// TestASlowStream: a client that takes a frame in time has its whole answer, however long that and the pauses of the
// upstream are.
func TestASlowStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowStream{reset: make(chan struct{}), takes: []time.Duration{59 * time.Second}}
		s := newStreamSender(w, &http.Request{ProtoMajor: 2}, &config.Server{SendTimeout: time.Minute})
		for range 3 {
			n, err := s.write(w, make([]byte, 3*piece+1))
			require.NoError(t, err)
			assert.Equal(t, 3*piece+1, n)
			time.Sleep(time.Hour)
		}
		w.takes = []time.Duration{time.Second, time.Hour}
		begin := time.Now()
		n, err := s.write(w, make([]byte, 2*piece))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, piece, n)
		assert.Equal(t, 61*time.Second, time.Since(begin))
	})
}
