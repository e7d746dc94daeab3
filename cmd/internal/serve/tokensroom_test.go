package serve

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBodiesThatOneClientHoldsBack: unfinished bodies of one client use at most a share of the memory for bodies. The
// client may use many addresses of its network. Other clients are served.
func TestBodiesThatOneClientHoldsBack(t *testing.T) {
	upstream := newUpstream(t, answers(200, jsonType, usageOf(10)))
	m := start(t, "admin: 127.0.0.1:0\ntrusted_proxies: 127.0.0.1\nupstream: "+upstream+"\n"+
		"rules: [{name: tokens, key: global, rate: 4000000000/h, tokens: {}}]\n")
	head := func(client string, size int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\nContent-Length: %d\r\n\r\n", chat, client, size)
	}
	ask := func(client string, size int) int { return m.status("", head(client, size)+strings.Repeat("a", size)) }
	const large, medium, small = 8 << 20, 100 << 10, 60 << 10
	var held []net.Conn
	for i := range 4 {
		conn := m.dial(head(fmt.Sprintf("2001:db8::%d", i+1), large))
		_, err := io.WriteString(conn, strings.Repeat("a", large-1))
		require.NoError(t, err)
		held = append(held, conn)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(m.metrics(), fmt.Sprintf("weir_tokens_bodies_bytes %v\n", float64(4*large)))
	}, 20*time.Second, time.Millisecond)
	assert.Equal(t, 503, ask("2001:db8::5", medium))
	assert.Contains(t, m.log.String(), "the bodies of one client take its share of the memory for bodies: its further requests are answered 503")
	assert.Contains(t, m.log.String(), "client=2001:db8::/64")
	assert.Equal(t, 200, ask("2001:db8::5", small), "small bodies are exempt")
	assert.Equal(t, 200, ask("2001:db8:0:1::1", large), "another client")
	_, err := io.WriteString(held[0], "a")
	require.NoError(t, err)
	want200(t, held[0])
	require.Eventually(t, func() bool { return ask("2001:db8::5", medium) == 200 }, 20*time.Second, time.Millisecond)
}

// TestClampKeepsRoomForWhatItChanges: clamp reserves memory for a changed body, and gives back what it does not need.
func TestClampKeepsRoomForWhatItChanges(t *testing.T) {
	came, answer := make(chan struct{}, 3), make(chan struct{})
	end := sync.OnceFunc(func() { close(answer) })
	defer end()
	m := startModel(t, "{name: tokens, key: global, rate: 4000000000/h, tokens: {clamp: true}}",
		func(w http.ResponseWriter, r *http.Request) {
			came <- struct{}{}
			<-answer
			answers(200, jsonType, usageOf(10))(w, r)
		})
	body := `{"max_tokens":10,"prompt":"` + strings.Repeat("a", 7<<20) + `"}`
	var conns []net.Conn
	for range 3 {
		conns = append(conns, m.dial(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", chat, len(body), body)))
		select {
		case <-came:
		case <-time.After(20 * time.Second):
			require.Fail(t, "the request does not reach the model")
		}
	}
	end()
	for _, conn := range conns {
		want200(t, conn)
	}
}
