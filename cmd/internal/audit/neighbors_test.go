package audit

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// TestNeighborsOfAnIPv6Network: the report says if two addresses of one /64 IPv6 network do not share a bucket.
func TestNeighborsOfAnIPv6Network(t *testing.T) {
	for bits, passes := range map[int]bool{128: true, 64: false} {
		r := audited(t, engine.TokenBucket(engine.PerSecond(5), 10), func(s *simulated) {
			s.key = func(ask Request) string {
				for _, f := range ask.Fields {
					if address, err := netip.ParseAddr(f[1]); err == nil && f[0] == "X-Forwarded-For" {
						if address.Is4() {
							return f[1]
						}
						network, err := address.Prefix(bits)
						require.NoError(t, err)
						return network.String()
					}
				}
				return ask.From
			}
		})
		w := r.way(t, "X-Forwarded-For: 2001:db8:0:64::2 while 2001:db8:0:64::1 is refused")
		assert.Equal(t, passes, w.Passes, bits)
		assert.Equal(t, !passes, w.Refused, bits)
		var text strings.Builder
		require.NoError(t, r.WriteText(&text))
		assert.Equal(t, passes, strings.Contains(text.String(), "has a bucket of its own: an address of the same IPv6 network, X-Forwarded-For: "))
		assert.Equal(t, map[bool]int{true: 2, false: 1}[passes], r.Faults)
		assert.Contains(t, text.String(), "not tried: two addresses of an IPv6 network of 64 bits")
	}
}

// TestAProtocolWithABucketOfItsOwn: the audit finds a separate bucket of HTTP/2, and names a protocol that the server
// does not support.
func TestAProtocolWithABucketOfItsOwn(t *testing.T) {
	for speaks, says := range map[bool]string{true: "passes while the plain request is refused: protocol HTTP/2\n", false: "not found out: HTTP/2\n"} {
		r := audited(t, engine.TokenBucket(engine.PerSecond(5), 10), func(s *simulated) {
			s.only1 = !speaks
			s.key = func(ask Request) string { return ask.From + ask.Proto }
		})
		assert.Equal(t, speaks, r.way(t, http2).Passes)
		assert.False(t, r.way(t, http2).Refused)
		var text strings.Builder
		require.NoError(t, r.WriteText(&text))
		assert.Contains(t, text.String(), says)
		assert.Contains(t, strings.Join(r.NotTried, "\n"), "the server takes no address from one")
	}
}

// TestHTTP2: the client uses HTTP/2 over TLS with a checked certificate, and in clear text. A server without HTTP/2 is
// an error.
func TestHTTP2(t *testing.T) {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	for name, c := range map[string]struct {
		start  func(*httptest.Server)
		speaks bool
	}{
		"clear text":         {func(s *httptest.Server) { s.Config.Protocols = &protocols; s.Start() }, true},
		"clear text, only 1": {func(s *httptest.Server) { s.Start() }, false},
		"TLS":                {func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }, true},
		"TLS, only HTTP/1.1": {func(s *httptest.Server) { s.StartTLS() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			proto := make(chan string, 10)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				proto <- r.Proto + " " + r.Header.Get("X-A") + " " + r.UserAgent()
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			c.start(server)
			defer server.Close()
			to, err := Resolve(t.Context(), server.URL+"/login?a=b", false)
			require.NoError(t, err)
			ask := Request{Method: http.MethodGet, Target: "/login?a=b", Proto: http2, Fields: [][2]string{{"X-A", "b"}}}
			if strings.HasPrefix(server.URL, "https") {
				if c.speaks {
					client, closeAll := NewClient(to)
					_, err := client.Do(t.Context(), ask)
					assert.ErrorContains(t, err, "certificate")
					closeAll()
				}
				to.Insecure = true
			}
			client, closeAll := NewClient(to)
			defer closeAll()
			a, err := client.Do(t.Context(), ask)
			if !c.speaks {
				assert.Error(t, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, http.StatusTooManyRequests, a.Status)
			assert.Contains(t, <-proto, "HTTP/2.0 b weir-audit")
			one, err := client.Do(t.Context(), Request{Method: http.MethodGet, Target: "/login"})
			require.NoError(t, err)
			assert.Equal(t, http.StatusTooManyRequests, one.Status)
			assert.Contains(t, <-proto, "HTTP/1.1 ")
		})
	}
}
