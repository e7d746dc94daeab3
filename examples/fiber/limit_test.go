package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testalloc"
)

// stopped is a clock that stands still.
var stopped = engine.ClockFunc(func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })

func request(peer net.Addr, lines ...string) *fasthttp.RequestCtx {
	var r fasthttp.Request
	for _, line := range lines {
		r.Header.Add("X-Forwarded-For", line)
	}
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(&r, peer, nil)
	return ctx
}

// TestClientAddr: clientAddr agrees with httplimit, and does not allocate for a direct client.
func TestClientAddr(t *testing.T) {
	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	require.NoError(t, err)
	proxy, direct := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}
	for _, c := range []struct {
		peer  net.Addr
		lines []string
		want  string
	}{
		{direct, nil, "192.0.2.1"},
		{direct, []string{"203.0.113.9"}, "192.0.2.1"},
		{proxy, nil, "10.0.0.1"},
		{proxy, []string{"203.0.113.9"}, "203.0.113.9"},
		{proxy, []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{proxy, []string{"1.1.1.1", "203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{proxy, []string{"203.0.113.9", "garbage"}, "10.0.0.1"},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.1")}, []string{"2001:db8::1"}, "2001:db8::1"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, []string{"2001:db8::1"}, "fe80::1"},
		{&net.UnixAddr{Name: "10.0.0.1"}, []string{"203.0.113.9"}, "invalid IP"},
	} {
		assert.Equal(t, c.want, clientAddr(ip, request(c.peer, c.lines...)).String(), "%v %q", c.peer, c.lines)
	}

	var got netip.Addr
	for _, c := range []struct {
		ctx  *fasthttp.RequestCtx
		most float64
	}{
		{request(direct, "203.0.113.9"), 0},
		{request(proxy, "1.1.1.1", "2001:db8:1234:5678:9abc:def0:1234:5678"), 1}, // allocates the slice of lines
	} {
		assert.LessOrEqual(t, testalloc.PerCall(func() { got = clientAddr(ip, c.ctx) }), c.most)
	}
	assert.Equal(t, netip.MustParseAddr("2001:db8:1234:5678:9abc:def0:1234:5678"), got)
}

// TestBuffersAreReused: fasthttp reuses the buffers of a connection for each request. Nevertheless, each of many
// clients on few connections is admitted exactly as often as its limit allows.
func TestBuffersAreReused(t *testing.T) {
	const connections, clients, each = 8, 64, 10
	ip, err := httplimit.NewClientIP(httplimit.TrustUnixSocket()) // an in-memory connection counts as the proxy
	require.NoError(t, err)
	byClient, err := engine.New(engine.TokenBucket(engine.Per(10, time.Minute), 5), stopped)
	require.NoError(t, err)
	defer byClient.Close()
	app := fiber.New()
	app.Get("/", limited(limit{"requests", byClient, clientKey(ip)}), func(c fiber.Ctx) error { return c.SendString("ok") })
	listener := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	defer func() {
		assert.NoError(t, app.Shutdown())
		assert.NoError(t, <-served)
	}()

	// If fasthttp writes a shorter address over a longer address in a buffer, the end of the longer address remains.
	addresses := make([]string, clients)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("203.0.113.%d", i)
		if i%2 == 1 {
			addresses[i] = fmt.Sprintf("2001:db8:%x:%x:1234:5678:9abc:def0", i, 4096-i)
		}
	}
	var mu sync.Mutex
	admitted := make([]int, clients)
	var group sync.WaitGroup
	for first := range connections {
		group.Go(func() {
			transport := &http.Transport{
				MaxConnsPerHost: 1,
				DialContext:     func(context.Context, string, string) (net.Conn, error) { return listener.Dial() },
			}
			defer transport.CloseIdleConnections()
			for n := range clients * each {
				i := (first*clients*each + n) / connections % clients
				if first%2 == 1 {
					i = clients - 1 - i
				}
				req, err := http.NewRequest("GET", "http://example.com/", nil)
				if !assert.NoError(t, err) {
					return
				}
				req.Header.Set("X-Forwarded-For", "192.0.2.1, "+addresses[i])
				resp, err := transport.RoundTrip(req)
				if !assert.NoError(t, err) {
					return
				}
				resp.Body.Close()
				if resp.StatusCode == 200 {
					mu.Lock()
					admitted[i]++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	for i, n := range admitted {
		assert.Equal(t, 5, n, addresses[i])
	}
}
