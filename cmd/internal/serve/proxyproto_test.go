package serve

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pires/go-proxyproto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
)

const byProxyProtocol = "listen: {address: \"127.0.0.1:0\", proxy_protocol: true}\n"

// status sends a PROXY protocol header and a request, and returns the status of the answer. It is 0 if there is no
// answer.
func (r *running) status(header, request string) int {
	r.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(r.dial(header+request)), nil)
	if err != nil {
		return 0
	}
	require.NoError(r.t, resp.Body.Close())
	return resp.StatusCode
}

func version2(t *testing.T, client string, command proxyproto.ProtocolVersionAndCommand) string {
	t.Helper()
	address, err := net.ResolveTCPAddr("tcp", client)
	require.NoError(t, err)
	text, err := (&proxyproto.Header{
		Version: 2, Command: command, TransportProtocol: proxyproto.TCPv4, SourceAddr: address, DestinationAddr: address,
	}).Format()
	require.NoError(t, err)
	return string(text)
}

// TestTheClientOfTheProxyProtocol: if the PROXY protocol names a client, this client has its own bucket. It does not
// matter which client the request names.
func TestTheClientOfTheProxyProtocol(t *testing.T) {
	seen := make(chan string, 9)
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("X-Forwarded-For") })
	s := start(t, byProxyProtocol+"trusted_proxies: 127.0.0.1\nupstream: "+upstream+
		"\nrules: [{name: a, rate: 1/h, burst: 1}]")
	const request = "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.66\r\n\r\n"
	for _, c := range []struct {
		header, client string // client is "" if the connection is refused
	}{
		{"PROXY TCP4 192.0.2.1 192.0.2.9 5 80\r\n", "192.0.2.1"},
		{"PROXY TCP4 192.0.2.1 192.0.2.9 6 80\r\n", ""},
		{"PROXY TCP6 2001:db8::1 2001:db8::9 5 80\r\n", "2001:db8::1"},
		{version2(t, "192.0.2.1:7", proxyproto.PROXY), ""},
		{version2(t, "192.0.2.2:7", proxyproto.PROXY), "192.0.2.2"},
	} {
		got := s.status(c.header, request)
		if c.client == "" {
			assert.Equal(t, 429, got, c.header)
			continue
		}
		assert.Equal(t, 200, got, c.header)
		assert.Equal(t, c.client, <-seen)
	}
	assert.Equal(t, 200, s.status("PROXY UNKNOWN\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "the balancer's own request")
	assert.Equal(t, "127.0.0.1", <-seen)
	for _, header := range []string{"PROXY UNKNOWN\r\n", version2(t, "192.0.2.3:7", proxyproto.LOCAL)} {
		assert.Equal(t, 429, s.status(header, request), "the balancer has not written who the client is: %q", header)
	}
	assert.Equal(t, 0, s.status("", request), "a trusted peer must send the header: the connection ends unanswered")
	assert.Equal(t, 0, s.status("PROXY nonsense\r\n", request))

	// A peer that is not a trusted proxy counts as itself.
	s.change(byProxyProtocol + "trusted_proxies: 192.0.2.0/24\nupstream: " + upstream +
		"\nrules: [{name: b, rate: 1/h, burst: 1}]")
	assert.Equal(t, 400, s.status("PROXY TCP4 192.0.2.1 192.0.2.9 5 80\r\n", request))
	assert.Equal(t, 200, s.status("", request))
	assert.Equal(t, "127.0.0.1", <-seen)
}

// TestBehindHAProxyOverTCP: a real HAProxy passes on connections with the PROXY protocol.
func TestBehindHAProxyOverTCP(t *testing.T) {
	s := start(t, byProxyProtocol+"trusted_proxies: 127.0.0.1\nlog: {access: all}\n"+one)
	for _, send := range []string{"send-proxy", "send-proxy-v2"} {
		address, conf := freeport.Address(t), filepath.Join(t.TempDir(), "haproxy.cfg")
		require.NoError(t, os.WriteFile(conf, []byte(
			"defaults\n    mode tcp\n    timeout connect 1m\n    timeout client 1m\n"+
				"    timeout server 1m\nlisten web\n    bind "+address+"\n    server weir "+s.address()+" "+send+"\n"), 0o600))
		startProgram(t, address, exec.Command(program(t, "haproxy"), "-db", "-f", conf))
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 7)}}
		client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
		resp, err := client.Get("http://" + address)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, 200, resp.StatusCode)
		s.waitFor("client=127.0.0.7 ")
	}
}

// TestAHeaderWithoutAnAddress: if a PROXY protocol header has no address, the request counts for the bucket of the
// balancer. It does not matter which address the request claims.
func TestAHeaderWithoutAnAddress(t *testing.T) {
	for from, field := range map[string]string{
		"x-forwarded-for": "X-Forwarded-For: 203.0.113.%d", "forwarded": "Forwarded: for=203.0.113.%d",
		"header:X-Who": "X-Who: 203.0.113.%d",
	} {
		s := start(t, byProxyProtocol+"trusted_proxies: 127.0.0.1\nclient_ip: {from: "+from+
			"}\nrules: [{name: a, rate: 1/h, burst: 1}]")
		for i, want := range []int{200, 429, 429} {
			assert.Equal(t, want, s.status("PROXY UNKNOWN\r\n",
				"GET / HTTP/1.1\r\nHost: x\r\n"+fmt.Sprintf(field, i)+"\r\n\r\n"), from)
		}
	}
}
