package serve

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAFieldForThisHopIsNoKey: rules ignore a field that Connection names, because the upstream does not get it.
// Otherwise a client could choose its bucket with this field.
func TestAFieldForThisHopIsNoKey(t *testing.T) {
	seen := make(chan http.Header, 9)
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
	s := start(t, "upstream: "+upstream+`
rules:
  - {name: key, match: {path: /key}, key: "header:X-API-Key", rate: 1/h, burst: 1}
  - {name: sid, match: {path: /sid}, key: "cookie:sid", rate: 1/h, burst: 1}
  - {name: strangers, match: {path: /no, not: {header: {Authorization: "*"}}}, rate: 1/h, burst: 1}`)
	for _, c := range []struct{ path, field, connection string }{
		{"/key", "X-API-Key: %d", "X-API-Key"},
		{"/sid", "Cookie: sid=%d", "close, , cookie"},
		{"/no", "Authorization: Basic %d", "keep-alive,\tauthorization"},
	} {
		for i, want := range []int{200, 429} {
			got := s.get(c.path, fmt.Sprintf(c.field, i), "Connection: "+c.connection).status
			assert.Equal(t, want, got, c)
		}
		header := <-seen
		assert.Empty(t, header.Get("X-API-Key")+header.Get("Cookie")+header.Get("Authorization"), c)
	}
}

// TestTheFieldsOfTheProxyAreNotForThisHop: the fields of a trusted proxy count even if Connection names them. The proxy
// may have passed on the Connection field of its client.
func TestTheFieldsOfTheProxyAreNotForThisHop(t *testing.T) {
	seen := make(chan http.Header, 9)
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
	for from, field := range map[string]string{
		"x-forwarded-for": "X-Forwarded-For: 203.0.113.%d", "forwarded": "Forwarded: for=203.0.113.%d",
		"header:X-Who": "X-Who: 203.0.113.%d",
	} {
		s := start(t, "trusted_proxies: 127.0.0.1\nclient_ip: {from: "+from+"}\nupstream: "+upstream+
			"\nrules: [{name: a, rate: 1/h, burst: 1}]")
		for i := range 3 {
			got := s.get("/", fmt.Sprintf(field, i), "Connection: X-Forwarded-For, forwarded, x-who")
			assert.Equal(t, 200, got.status, from)
			assert.Equal(t, fmt.Sprintf("203.0.113.%d", i), (<-seen).Get("X-Real-Ip"), from)
		}
		assert.Equal(t, 429, s.get("/", fmt.Sprintf(field, 2)).status)
	}
}
