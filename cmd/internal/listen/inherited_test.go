package listen

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOverlaps: a socket does not block another host's address with the same port.
func TestOverlaps(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 80} }
	for _, c := range []struct {
		bound   net.Addr
		address string
		want    bool
	}{
		{at("127.0.0.1"), "127.0.0.1:80", true},
		{at("127.0.0.1"), "127.0.0.1:080", true},
		{at("127.0.0.1"), ":80", true},
		{at("127.0.0.1"), "0.0.0.0:80", true},
		{at("::"), "127.0.0.1:80", true},
		{at("127.0.0.1"), "127.0.0.2:80", false},
		{at("127.0.0.1"), ":81", false},
		{at("::"), "unix:/run/a", false},
		{&net.UnixAddr{Name: "/run/a", Net: "unix"}, "unix:/run/a", true},
		{&net.UnixAddr{Name: "/run/a", Net: "unix"}, "unix:/run/b", false},
		{&net.UnixAddr{Name: "/run/a", Net: "unix"}, ":80", false},
	} {
		assert.Equal(t, c.want, overlaps(c.bound, c.address), "%s %s", c.bound, c.address)
	}
}

// TestIsBoundTo: isBoundTo accepts every notation of the address to which a socket is bound.
func TestIsBoundTo(t *testing.T) {
	at := func(text string) net.Addr {
		addr, err := net.ResolveTCPAddr("tcp", text)
		require.NoError(t, err)
		return addr
	}
	for _, c := range []struct {
		bound   net.Addr
		address string
		want    bool
	}{
		{at("127.0.0.1:80"), "127.0.0.1:80", true},
		{at("127.0.0.1:80"), "127.0.0.1:81", false},
		{at("127.0.0.1:80"), "127.0.0.2:80", false},
		{at("127.0.0.1:80"), ":80", false},
		{at("[::]:80"), ":80", true},
		{at("[::]:80"), "0.0.0.0:80", true},
		{at("0.0.0.0:80"), "[::]:80", true},
		{at("[::]:80"), "127.0.0.1:80", false},
		{at("[::1]:80"), "[0:0::1]:80", true},
		{at("127.0.0.1:80"), "no.such.host.invalid:80", false},
		{at("127.0.0.1:80"), "unix:/run/a", false},
		{&net.UnixAddr{Name: "/run/a", Net: "unix"}, "unix:/run/a", true},
		{&net.UnixAddr{Name: "/run/a", Net: "unix"}, "unix:/run/b", false},
		{&net.UnixAddr{Name: "/run/a", Net: "unix"}, "127.0.0.1:80", false},
	} {
		assert.Equal(t, c.want, isBoundTo(c.bound, c.address), "%s %s", c.bound, c.address)
	}
}
