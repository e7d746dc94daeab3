package httplimit_test

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

func clientIP(t testing.TB, options ...httplimit.IPOption) *httplimit.ClientIP {
	t.Helper()
	c, err := httplimit.NewClientIP(options...)
	require.NoError(t, err)
	return c
}

const (
	proxy  = "10.0.0.1:4321"           // trusted
	proxy6 = "[2001:db8:ffff::1]:4321" // trusted
	direct = "198.51.100.7:4321"       // not trusted
)

// TestForwardedForChains: only the connection's address and the entries of trusted proxies count.
func TestForwardedForChains(t *testing.T) {
	ip := clientIP(t, httplimit.TrustProxies("10.0.0.0/8", "2001:db8:ffff::/48", "192.0.2.50"))
	for _, c := range []struct {
		name   string
		remote string
		lines  []string
		want   string // "" for the zero Addr
	}{
		{"no header, direct", direct, nil, "198.51.100.7"},
		{"no header, proxy", proxy, nil, "10.0.0.1"},
		{"one hop", proxy, []string{"203.0.113.9"}, "203.0.113.9"},
		{"one hop over IPv6", proxy6, []string{"203.0.113.9"}, "203.0.113.9"},
		{"direct client forges a client", direct, []string{"203.0.113.9"}, "198.51.100.7"},
		{"direct client forges a trusted one", direct, []string{"10.0.0.9"}, "198.51.100.7"},
		{"direct client forges a chain", direct, []string{"1.1.1.1, 10.0.0.1, 10.0.0.2"}, "198.51.100.7"},
		{"forged first", proxy, []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"forged trusted address first", proxy, []string{"10.9.9.9, 203.0.113.9"}, "203.0.113.9"},
		{"forged loopback", proxy, []string{"127.0.0.1, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies", proxy, []string{"203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{"two proxies, forged first", proxy, []string{"1.1.1.1, 203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{"trusted by one address", proxy, []string{"203.0.113.9, 192.0.2.50"}, "203.0.113.9"},
		{"neighbour of the trusted address", proxy, []string{"203.0.113.9, 192.0.2.51"}, "192.0.2.51"},
		{"all trusted: the leftmost", proxy, []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"proxies over both families", proxy6, []string{"2001:db8::1, 10.0.0.2, 2001:db8:ffff::2"}, "2001:db8::1"},
		{"no spaces", proxy, []string{"1.1.1.1,203.0.113.9,10.0.0.2"}, "203.0.113.9"},
		{"many spaces and tabs", proxy, []string{" \t 203.0.113.9 \t , \t10.0.0.2  "}, "203.0.113.9"},

		{"two lines are one list", proxy, []string{"203.0.113.9", "10.0.0.2"}, "203.0.113.9"},
		{"a forged first line", proxy, []string{"1.1.1.1", "203.0.113.9"}, "203.0.113.9"},
		{"a forged first line of trusted ones", proxy, []string{"1.1.1.1, 10.0.0.8", "203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{"three lines", proxy, []string{"1.1.1.1", "203.0.113.9", "10.0.0.2"}, "203.0.113.9"},
		{"an empty first line", proxy, []string{"", "203.0.113.9"}, "203.0.113.9"},
		{"an empty last line ends the walk", proxy, []string{"203.0.113.9", ""}, "10.0.0.1"},

		{"a port", proxy, []string{"203.0.113.9:8080"}, "203.0.113.9"},
		{"an IPv6 address", proxy, []string{"2001:db8::1"}, "2001:db8::1"},
		{"in brackets", proxy, []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"in brackets with a port", proxy, []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{"in full and upper case", proxy, []string{"2001:0DB8:0000:0000:0000:0000:0000:0001"}, "2001:db8::1"},
		{"a zone", proxy, []string{"fe80::1%eth0"}, "fe80::1"},
		{"a zone, brackets and a port", proxy, []string{"[fe80::1%25eth0]:443"}, "fe80::1"},
		{"mapped into IPv6", proxy, []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"mapped into IPv6, in hexadecimal", proxy, []string{"::ffff:cb00:7109"}, "203.0.113.9"},
		{"a mapped trusted proxy", proxy, []string{"203.0.113.9, ::ffff:10.0.0.2"}, "203.0.113.9"},
		{"a trusted proxy with a port", proxy, []string{"203.0.113.9, 10.0.0.2:99"}, "203.0.113.9"},
		{"a mapped socket", "[::ffff:10.0.0.1]:4321", []string{"203.0.113.9"}, "203.0.113.9"},
		{"a socket with a zone", "[fe80::1%eth0]:4321", []string{"203.0.113.9"}, "fe80::1"},

		{"garbage", proxy, []string{"garbage"}, "10.0.0.1"},
		{"unknown", proxy, []string{"unknown"}, "10.0.0.1"},
		{"garbage left of the client", proxy, []string{"garbage, 203.0.113.9"}, "203.0.113.9"},
		{"garbage right of the client", proxy, []string{"203.0.113.9, garbage"}, "10.0.0.1"},
		{"garbage behind a trusted proxy", proxy, []string{"203.0.113.9, garbage, 10.0.0.2"}, "10.0.0.2"},
		{"an empty element", proxy, []string{"203.0.113.9, , 10.0.0.2"}, "10.0.0.2"},
		{"a comma at the end", proxy, []string{"203.0.113.9,"}, "10.0.0.1"},
		{"only commas", proxy, []string{",,,,"}, "10.0.0.1"},
		{"a leading zero", proxy, []string{"203.0.113.009"}, "10.0.0.1"},
		{"three numbers", proxy, []string{"203.0.113"}, "10.0.0.1"},
		{"a number above 255", proxy, []string{"203.0.113.256"}, "10.0.0.1"},
		{"a decimal address", proxy, []string{"3405803785"}, "10.0.0.1"},
		{"a prefix", proxy, []string{"203.0.113.0/24"}, "10.0.0.1"},
		{"a port that is none", proxy, []string{"203.0.113.9:http"}, "10.0.0.1"},
		{"a port too large", proxy, []string{"203.0.113.9:65536"}, "10.0.0.1"},
		{"an empty port", proxy, []string{"203.0.113.9:"}, "10.0.0.1"},
		{"a port of RFC 7239", proxy, []string{"203.0.113.9:_port"}, "10.0.0.1"},
		{"an IPv4 address with a zone", proxy, []string{"203.0.113.9%eth0"}, "10.0.0.1"},
		{"an IPv4 address in brackets", proxy, []string{"[203.0.113.9]"}, "10.0.0.1"},
		{"an open bracket", proxy, []string{"[2001:db8::1"}, "10.0.0.1"},
		{"text after the bracket", proxy, []string{"[2001:db8::1]x"}, "10.0.0.1"},
		{"quotes", proxy, []string{`"203.0.113.9"`}, "10.0.0.1"},
		{"a host name", proxy, []string{"client.example"}, "10.0.0.1"},
		{"a zero byte", proxy, []string{"203.0.113.9\x00"}, "10.0.0.1"},
		{"a full-width digit", proxy, []string{"203.0.113.\uff19"}, "10.0.0.1"},
		{"a semicolon", proxy, []string{"203.0.113.9; 1.1.1.1"}, "10.0.0.1"},
		{"a line break", proxy, []string{"1.1.1.1\r\n203.0.113.9"}, "10.0.0.1"},
		{"very long", proxy, []string{strings.Repeat("9", 100_000)}, "10.0.0.1"},
		{"very many", proxy, []string{"203.0.113.9" + strings.Repeat(", 10.0.0.2", 10_000)}, "203.0.113.9"},

		{"a Unix socket", "@", []string{"203.0.113.9"}, ""},
		{"no socket", "", []string{"203.0.113.9"}, ""},
		{"a socket of no address", "pipe", nil, ""},
		{"a socket without a port", "10.0.0.1", []string{"203.0.113.9"}, "203.0.113.9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := getFrom(c.remote)
			r.Header["X-Forwarded-For"] = c.lines
			got := ip.Addr(r)
			if c.want == "" {
				assert.False(t, got.IsValid(), "%v", got)
				return
			}
			assert.Equal(t, c.want, got.String())
		})
	}
}

// TestForwarded checks the header of RFC 7239, with its quoted strings and its names for unknown clients.
func TestForwarded(t *testing.T) {
	ip := clientIP(t, httplimit.TrustProxies("10.0.0.0/8"), httplimit.IPHeader("forwarded"))
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{[]string{`for=203.0.113.9`}, "203.0.113.9"},
		{[]string{`For="203.0.113.9:80"`}, "203.0.113.9"},
		{[]string{`FOR="[2001:db8:cafe::17]:4711"`}, "2001:db8:cafe::17"},
		{[]string{`for="[2001:db8::1]:_hidden"`}, "2001:db8::1"},
		{[]string{`proto=http;for=203.0.113.9;by=10.0.0.1;host="a,b;c"`}, "203.0.113.9"},
		{[]string{`for=203.0.113.9 ; proto=https`}, "203.0.113.9"},
		{[]string{`for=203.0.113.9;`}, "10.0.0.1"},
		{[]string{`;for=203.0.113.9`}, "203.0.113.9"},
		{[]string{`for=1.1.1.1, for=203.0.113.9, for=10.0.0.2`}, "203.0.113.9"},
		{[]string{`for=1.1.1.1`, `for=203.0.113.9`, `for=10.0.0.2;proto=https`}, "203.0.113.9"},
		{[]string{`for="203.0.113\.9"`}, "203.0.113.9"},
		{[]string{`for=203.0.113.9;x="a\"b, for=1.1.1.1"`}, "203.0.113.9"},
		{[]string{`for=203.0.113.9;x="a, for=1.1.1.1\"b"`}, "203.0.113.9"},
		{[]string{`for=203.0.113.9;x="a\\"`}, "203.0.113.9"},
		{[]string{`for=2001:db8::1`}, "2001:db8::1"},

		{[]string{`for=unknown`}, "10.0.0.1"},
		{[]string{`for=_hidden`}, "10.0.0.1"},
		{[]string{`for=203.0.113.9, for=unknown`}, "10.0.0.1"},
		{[]string{`for=203.0.113.9, for=_hidden, for=10.0.0.2`}, "10.0.0.2"},
		{[]string{`proto=https`}, "10.0.0.1"},
		{[]string{`203.0.113.9`}, "10.0.0.1"},
		{[]string{`for=`}, "10.0.0.1"},
		{[]string{`for=""`}, "10.0.0.1"},
		{[]string{`for="203.0.113.9`}, "10.0.0.1"},
		{[]string{`for=203.0.113.9"`}, "10.0.0.1"},
		{[]string{`for="203.0.113.9"x`}, "10.0.0.1"},
		{[]string{`for="203.0.113.9\"`}, "10.0.0.1"},
		{[]string{`for=203.0.113.9;for=1.1.1.1`}, "10.0.0.1"},
		{[]string{`for =203.0.113.9`}, "10.0.0.1"},
		{[]string{``}, "10.0.0.1"},
		{nil, "10.0.0.1"},

		// If a client leaves a quote open, the address that the proxy appended is still found.
		{[]string{`for="1.1.1.1, for=203.0.113.9`}, "203.0.113.9"},
		{[]string{`for=1.1.1.1;x=", for="[2001:db8::1]";proto=https`}, "2001:db8::1"},
		{[]string{`x="\, for="[2001:db8::1]:80"`}, "2001:db8::1"},
	} {
		t.Run(strings.Join(c.lines, "|"), func(t *testing.T) {
			r := getFrom(proxy)
			r.Header["Forwarded"] = c.lines
			r.Header.Set("X-Forwarded-For", "6.6.6.6") // ignored: the option names another header
			assert.Equal(t, c.want, ip.Addr(r).String())
			r.RemoteAddr = direct
			assert.Equal(t, "198.51.100.7", ip.Addr(r).String())
		})
	}
}

// TestOneNamedHeader: IPHeader names a header that contains one address. Other headers do not count.
func TestOneNamedHeader(t *testing.T) {
	ip := clientIP(t, httplimit.TrustProxies("10.0.0.1"), httplimit.IPHeader("CF-Connecting-IP"))
	assert.Equal(t, "203.0.113.9", ip.Addr(getFrom(proxy, "cf-connecting-ip", "203.0.113.9", "X-Forwarded-For",
		"6.6.6.6")).String())
	assert.Equal(t, "10.0.0.1", ip.Addr(getFrom(proxy, "X-Forwarded-For", "6.6.6.6", "X-Real-IP", "6.6.6.6",
		"Forwarded", "for=6.6.6.6")).String())
	assert.Equal(t, "198.51.100.7", ip.Addr(getFrom(direct, "CF-Connecting-IP", "6.6.6.6")).String())
}

// TestUnixSockets: peers on Unix sockets have no address. They share one key, unless their header is trusted.
func TestUnixSockets(t *testing.T) {
	r := getFrom("@", "X-Forwarded-For", "203.0.113.9")
	for _, options := range [][]httplimit.IPOption{nil, {httplimit.TrustProxies("0.0.0.0/0", "::/0")}} {
		ip := clientIP(t, options...)
		assert.False(t, ip.Addr(r).IsValid())
		text, limited := httplimit.KeyFunc(ip.Key).Text(r)
		assert.True(t, limited, "nobody is unlimited for want of an address")
		other, _ := httplimit.KeyFunc(ip.Key).Text(getFrom("", "X-Forwarded-For", "203.0.113.10"))
		assert.Equal(t, text, other)
	}
	ip := clientIP(t, httplimit.TrustUnixSocket(), httplimit.TrustProxies("10.0.0.0/8"))
	assert.Equal(t, "203.0.113.9", ip.Addr(r).String())
	assert.Equal(t, "203.0.113.9", ip.Addr(getFrom("@", "X-Forwarded-For", "203.0.113.9, 10.0.0.2")).String())
	assert.False(t, ip.Addr(getFrom("@", "X-Forwarded-For", "@")).IsValid(), "a header names no Unix socket")
	assert.Equal(t, "198.51.100.7", ip.Addr(getFrom(direct, "X-Forwarded-For", "203.0.113.9")).String())
}

func TestPrefixes(t *testing.T) {
	text := func(c *httplimit.ClientIP, remote string) string {
		key, limited := httplimit.KeyFunc(c.Key).Text(getFrom(remote))
		require.True(t, limited)
		return key
	}
	normal := clientIP(t)
	assert.Equal(t, "ip:203.0.113.9", text(normal, "203.0.113.9:1"))
	assert.Equal(t, "ip:203.0.113.9", text(normal, "[::ffff:203.0.113.9]:1"))
	assert.Equal(t, "ip:2001:db8:1:2::", text(normal, "[2001:db8:1:2:3:4:5:6]:1"))
	assert.Equal(t, "ip:fe80::", text(normal, "[fe80::1%eth0]:1"))
	wide := clientIP(t, httplimit.IPv4Prefix(24), httplimit.IPv6Prefix(48))
	assert.Equal(t, "ip:203.0.113.0", text(wide, "203.0.113.9:1"))
	assert.Equal(t, "ip:2001:db8:1::", text(wide, "[2001:db8:1:2:3:4:5:6]:1"))
	narrow := clientIP(t, httplimit.IPv6Prefix(128))
	assert.Equal(t, "ip:2001:db8:1:2:3:4:5:6", text(narrow, "[2001:db8:1:2:3:4:5:6]:1"))
	assert.Equal(t, "2001:db8:1:2::/64", normal.Prefix(getFrom("[2001:db8:1:2:3:4:5:6]:1")).String())
	assert.False(t, normal.Prefix(getFrom("@")).IsValid())
}

// TestMappedProxies: a trusted proxy with an IPv4 address is also recognized if the address is mapped into IPv6.
func TestMappedProxies(t *testing.T) {
	ip := clientIP(t, httplimit.TrustProxies("::ffff:10.0.0.0/104", "::ffff:192.0.2.1"))
	assert.Equal(t, "203.0.113.9", ip.Addr(getFrom("10.200.0.1:1", "X-Forwarded-For",
		"203.0.113.9, 192.0.2.1")).String())
}

func TestBadClientIPOptions(t *testing.T) {
	for _, c := range []struct {
		option httplimit.IPOption
		want   string
	}{
		{httplimit.TrustProxies(), "at least one"},
		{httplimit.TrustProxies("10.0.0.0/8", "10.0.0.256"), `"10.0.0.256" is neither`},
		{httplimit.TrustProxies("10.0.0.0/33"), `"10.0.0.0/33" is not a CIDR`},
		{httplimit.TrustProxies("10.0.0.1/8"), `"10.0.0.1/8" has bits beyond its prefix: want 10.0.0.0/8`},
		{httplimit.TrustProxies("fe80::1%eth0"), `"fe80::1%eth0" is neither`},
		{httplimit.TrustProxies("fe80::%eth0/10"), `"fe80::%eth0/10" is not a CIDR`},
		{httplimit.TrustProxies("::ffff:0.0.0.0/90"), "bits beyond"},
		{httplimit.TrustProxies("proxy.example"), `"proxy.example" is neither`},
		{httplimit.TrustProxies(""), `"" is neither`},
		{httplimit.IPHeader(""), `IPHeader("")`},
		{httplimit.IPHeader("X Real IP"), `IPHeader("X Real IP")`},
		{httplimit.IPHeader("X-Real-IP"), "without TrustProxies"},
		{httplimit.IPv6Prefix(0), "IPv6Prefix(0): want 1 to 128"},
		{httplimit.IPv6Prefix(129), "IPv6Prefix(129)"},
		{httplimit.IPv4Prefix(-1), "IPv4Prefix(-1): want 1 to 32"},
		{httplimit.IPv4Prefix(33), "IPv4Prefix(33)"},
		{nil, "option 1 of 1 is nil"},
	} {
		_, err := httplimit.NewClientIP(c.option)
		assert.ErrorContains(t, err, c.want)
	}
}

// FuzzClientIP: no header makes the search fail. A header has no effect if it is not from a trusted proxy.
func FuzzClientIP(f *testing.F) {
	for _, seed := range []string{
		"203.0.113.9", "1.1.1.1, 203.0.113.9:80, 10.0.0.2", "[2001:db8::1%eth0]:443", "::ffff:1.2.3.4",
		`for="[2001:db8::1]:_p";proto=https, for=unknown`, `for="a\"b, c`, `for="1.2.3.4\`, ",,;;\"\\", "garbage",
	} {
		f.Add(seed, seed)
	}
	trust := httplimit.TrustProxies("10.0.0.0/8")
	ips := []*httplimit.ClientIP{clientIP(f, trust), clientIP(f, trust, httplimit.IPHeader("Forwarded")), clientIP(f)}
	f.Fuzz(func(t *testing.T, first, second string) {
		for i, ip := range ips {
			r := getFrom(proxy)
			r.Header["X-Forwarded-For"] = []string{first, second}
			r.Header["Forwarded"] = []string{first, second}
			got := ip.Addr(r)
			if !got.IsValid() || got.Zone() != "" || got.Is4In6() {
				t.Fatalf("client is %v", got)
			}
			if i == 2 && got.String() != "10.0.0.1" {
				t.Fatalf("no proxy is trusted, but the client is %v", got)
			}
			r.RemoteAddr = direct
			if got := ip.Addr(r); got.String() != "198.51.100.7" {
				t.Fatalf("the peer is not trusted, but the client is %v", got)
			}
		}
	})
}

func TestClientIPDoesNotAllocate(t *testing.T) {
	trust := httplimit.TrustProxies("10.0.0.0/8", "2001:db8:ffff::/48")
	limiter := testclock.New().Limiter(t, engine.TokenBucket(engine.PerSecond(1), 5))
	for _, c := range []struct {
		ip     *httplimit.ClientIP
		header string
		lines  []string
	}{
		{clientIP(t), "X-Forwarded-For", nil},
		{clientIP(t, trust), "X-Forwarded-For", []string{"1.1.1.1, 203.0.113.9, 10.0.0.2", "10.0.0.3:80"}},
		{clientIP(t, trust), "X-Forwarded-For", []string{"[2001:db8::1%eth0]:443, ::ffff:10.0.0.2"}},
		{clientIP(t, trust, httplimit.IPHeader("Forwarded")), "Forwarded", []string{`for="[2001:db8::1]:443";proto=https, for=10.0.0.2`}},
	} {
		for _, remote := range []string{proxy, proxy6, "[fe80::1%eth0]:1"} {
			r := getFrom(remote)
			r.Header[c.header] = c.lines
			key := httplimit.KeyFunc(c.ip.Key)
			allocs := testalloc.PerCall(func() { key(limits.HasherOf(limiter), r) })
			assert.Zero(t, allocs, "%s %v", remote, c.lines)
		}
	}
}

// TestAddrOf: AddrOf returns the same address for other protocols as for HTTP. It reads metadata only if the peer is
// trusted.
func TestAddrOf(t *testing.T) {
	ip := clientIP(t, httplimit.TrustProxies("10.0.0.0/8", "fe80::/64"), httplimit.IPHeader("x-real-ip"))
	assert.Equal(t, "X-Real-Ip", ip.Header())
	lines := func() []string { return []string{"203.0.113.7"} }
	client := netip.MustParseAddr("203.0.113.7")
	assert.Equal(t, client, ip.AddrOf(netip.MustParseAddr("::ffff:10.0.0.1"), lines))
	assert.Equal(t, client, ip.AddrOf(netip.MustParseAddr("fe80::1%eth0"), lines), "a zone is no part of it")
	never := func() []string {
		t.Error("the header of a peer that is not trusted was read")
		return nil
	}
	assert.Equal(t, netip.MustParseAddr("192.0.2.1"), ip.AddrOf(netip.MustParseAddr("192.0.2.1"), never))
	assert.Equal(t, netip.Addr{}, ip.AddrOf(netip.Addr{}, never))
	assert.Equal(t, "2001:db8::/64", ip.PrefixOf(netip.MustParseAddr("2001:db8::1")).String())
	assert.Equal(t, netip.Prefix{}, ip.PrefixOf(netip.Addr{}))
}

// If a list of addresses is long, it is parsed only once for all limits. Each limit gets the same address as if it were
// the only limit.
func TestClientIPOfALongListIsFoundOnce(t *testing.T) {
	c := clientIP(t, httplimit.TrustProxies("10.0.0.0/8", "192.0.2.0/24"))
	for _, list := range [][]string{
		{strings.Repeat("10.0.0.1, ", 1000) + "10.0.0.2"}, {"198.51.100.7, " + strings.Repeat("10.0.0.1, ", 1000) + "10.0.0.2"},
		{"198.51.100.7", strings.Repeat("10.0.0.1, ", 100) + "10.0.0.2"}, {strings.Repeat(" ", 1000)}, {"x," + strings.Repeat("10.0.0.1,", 99)},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = "192.0.2.1:80", list
		want := c.Addr(r)
		kept := r.WithContext(context.WithValue(r.Context(), reading.ParsedKey{}, new(reading.Parsed)))
		assert.Equal(t, want, c.Addr(kept), "%.20q", list)
		r.Header["X-Forwarded-For"] = nil
		assert.Equal(t, want, c.Addr(kept), "%.20q: not read again", list)
	}
}
