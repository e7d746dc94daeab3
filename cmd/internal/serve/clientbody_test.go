package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/cmd/internal/pipes"
)

// TestABodyOfARequestThatIsNoneHoldsNoConnection: what is answered before any rule is asked is waited for no longer.
func TestABodyOfARequestThatIsNoneHoldsNoConnection(t *testing.T) {
	s := start(t, one)
	for request, want := range map[string]string{"CONNECT a:1": "405", "OPTIONS *": "200", "GET /#": "400"} {
		for _, length := range []string{"Content-Length: 9", "Transfer-Encoding: chunked"} {
			t.Run(request+", "+length, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client, conn := net.Pipe()
					defer client.Close()
					log := slog.New(slog.DiscardHandler)
					e := listen.Endpoint{HTTP: listen.HTTP{ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute}}
					h := listen.New(listen.Config{Base: t.Context(), Log: log}).HTTP(e, s, nil)
					ended, end := context.WithCancel(t.Context())
					end()
					defer h.Shutdown(ended)
					limit := listen.NewConnLimit(clients, listen.FullHTTP, s.clientOf, log)
					l := pipes.Listener(limit.Admit(pipes.Conn{Conn: conn}, 0))
					go h.Serve(l) // ends with the server
					begin := time.Now()
					_, err := io.WriteString(client, request+" HTTP/1.1\r\nHost: a\r\n"+length+"\r\n\r\n")
					assert.NoError(t, err)
					_ = client.SetReadDeadline(begin.Add(time.Hour))
					answer, err := io.ReadAll(client)
					assert.NoError(t, err, "the server closes the connection")
					assert.Contains(t, string(answer), "HTTP/1.1 "+want+" ")
					assert.InDelta(t, 10.0, time.Since(begin).Seconds(), 1)
				})
			})
		}
	}
}
