package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/cmd/internal/pipes"
)

// TestARefusalDoesNotWaitForABodyThatItsClientHoldsBack: a client waits for 100 Continue before it sends its body. If
// its request is refused, it gets the refusal at once, and the connection closes.
func TestARefusalDoesNotWaitForABodyThatItsClientHoldsBack(t *testing.T) {
	s := start(t, "rules: [{name: a, rate: 0, match: {method: DELETE}}]\n")
	for request, want := range map[string]string{"DELETE /": "429", "POST /../x": "400", "OPTIONS *": "200", "POST /": "200"} {
		for _, length := range []string{"Content-Length: 9", "Transfer-Encoding: chunked"} {
			conn, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(s.URL(), "http://"), "/"))
			require.NoError(t, err)
			_, err = io.WriteString(conn, request+" HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"+length+"\r\n\r\n")
			assert.NoError(t, err)
			_ = conn.SetReadDeadline(time.Now().Add(8 * time.Second)) // less than paceGrace
			answer, err := io.ReadAll(conn)
			assert.NoError(t, err, "%s: the server closes the connection", request)
			assert.Contains(t, string(answer), "HTTP/1.1 "+want+" ")
			assert.Contains(t, string(answer), "Connection: close\r\n")
			conn.Close()
		}
	}
}

// TestABodyOfARequestThatIsNoneHoldsNoConnection: no rule decides some requests, such as CONNECT. Their bodies have the
// same timeout as the bodies of other requests.
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
					go h.Serve(l) // returns when the server ends
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
