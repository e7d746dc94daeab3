package fuzz

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-go/weir/httplimit"
)

// TestForgedPrefixChangesNothing: behind one trusted proxy, the client's address is the one that the proxy has
// appended, whatever the client sends.
func TestForgedPrefixChangesNothing(t *testing.T) {
	trust := httplimit.TrustProxies("10.0.0.0/8")
	ip, err := httplimit.NewClientIP(trust)
	require.NoError(t, err)
	forwarded, err := httplimit.NewClientIP(trust, httplimit.IPHeader("Forwarded"))
	require.NoError(t, err)
	piece := rapid.SampledFrom([]string{
		"1.1.1.1", "10.0.0.2", "::1", "[", "]", ":", "%", ",", " ", ";", `"`, `\`, "=", "for=", "for=1.1.1.1", "unknown", "\x00", "é", "x",
	})
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		for range rapid.IntRange(0, 3).Draw(t, "lines") {
			lines = append(lines, strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), ""))
		}
		client := rapid.SampledFrom([]string{"203.0.113.9", "2001:db8::1"}).Draw(t, "client")
		node := client
		if strings.Contains(client, ":") {
			node = `"[` + client + `]:443"`
		}
		sameLine := len(lines) > 0 && rapid.Bool().Draw(t, "same line")
		add := func(element string) []string {
			if !sameLine {
				return append(append([]string{}, lines...), element)
			}
			out := append([]string{}, lines...)
			out[len(out)-1] += ", " + element
			return out
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "10.0.0.1:4321"
		r.Header["X-Forwarded-For"] = add(client)
		r.Header["Forwarded"] = add("for=" + node + ";proto=https")
		if got := ip.Addr(r).String(); got != client {
			t.Fatalf("X-Forwarded-For %q: client is %s", r.Header["X-Forwarded-For"], got)
		}
		if got := forwarded.Addr(r).String(); got != client {
			t.Fatalf("Forwarded %q: client is %s", r.Header["Forwarded"], got)
		}
	})
}
