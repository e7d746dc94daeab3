package serve

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// TestAShutWindowEndsTheStream: if a client does not read an HTTP/2 stream, the stream is reset, and its request is no
// longer in flight. Other streams of the connection continue.
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
			assert.EqualValues(t, 1, s.connections[clients].Open())
		})
	}
}
