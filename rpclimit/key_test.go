package rpclimit_test

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

func TestPeer(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8::2:3", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1", "fe80::1%eth0", true},
		{"", "", true},
		{"", "192.0.2.1", false},
	} {
		assert.Equal(t, test.same, same(t, rpclimit.Peer, from(test.a), from(test.b)), "%s and %s", test.a, test.b)
	}
}

// TestKeysAreThoseOfHTTP: if a limiter is used for HTTP and for RPC, a client has one bucket for both.
func TestKeysAreThoseOfHTTP(t *testing.T) {
	h := limits.HasherOf(testclock.New().Burst(t, 1))
	r := httptest.NewRequest("POST", "/", nil)
	r.RemoteAddr = "[2001:db8::7]:80"
	r.Header.Set("X-Api-Key", "secret")
	header, err := httplimit.Header("X-API-Key", nil)
	require.NoError(t, err)
	value, err := rpclimit.MetadataValue("X-API-Key", nil)
	require.NoError(t, err)
	c := from("2001:db8::9", "x-api-key", "secret")
	for name, keys := range map[string]struct {
		http httplimit.KeyFunc
		rpc  rpclimit.KeyFunc
	}{
		"address": {httplimit.RemoteIP, rpclimit.Peer},
		"value":   {header, value},
		"all":     {httplimit.Everyone, rpclimit.Everyone},
		"join":    {httplimit.Join(httplimit.RemoteIP, header), rpclimit.Join(rpclimit.Peer, value)},
	} {
		want, _ := keys.http(h, r)
		got, _ := keys.rpc(h, c)
		assert.Equal(t, want, got, name)
	}
}

func TestClientAddr(t *testing.T) {
	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	require.NoError(t, err)
	key, err := rpclimit.ClientAddr(ip)
	require.NoError(t, err)
	direct := from("203.0.113.7")
	assert.True(t, same(t, key, direct, from("10.0.0.1", "x-forwarded-for", "203.0.113.7")))
	assert.True(t, same(t, key, direct, from("10.0.0.1", "x-forwarded-for", "1.1.1.1, 203.0.113.7, 10.0.0.2")))
	assert.True(t, same(t, key, direct, from("10.0.0.1", "x-forwarded-for", "1.1.1.1", "x-forwarded-for", "203.0.113.7")))
	assert.True(t, same(t, key, direct, from("203.0.113.7", "x-forwarded-for", "1.1.1.1")), "a client writes what it likes")
	unix := from("", "x-forwarded-for", "203.0.113.7")
	assert.False(t, same(t, key, direct, unix), "a Unix socket is not trusted unless that is said")
	assert.True(t, same(t, key, from(""), unix))
	none := from("10.0.0.1")
	none.Metadata = nil
	assert.True(t, same(t, key, none, from("10.0.0.1")))

	ip, err = httplimit.NewClientIP(httplimit.TrustUnixSocket(), httplimit.IPHeader("X-Real-IP"))
	require.NoError(t, err)
	key, err = rpclimit.ClientAddr(ip)
	require.NoError(t, err)
	assert.True(t, same(t, key, direct, from("", "x-real-ip", "203.0.113.7")))

	_, err = rpclimit.ClientAddr(nil)
	assert.ErrorContains(t, err, "ClientAddr(nil)")
}

func TestMetadataValue(t *testing.T) {
	key, err := rpclimit.MetadataValue("x-api-key", rpclimit.Peer)
	require.NoError(t, err)
	a := from("192.0.2.1", "x-api-key", "a")
	assert.True(t, same(t, key, a, from("192.0.2.2", "x-api-key", "a")))
	assert.False(t, same(t, key, a, from("192.0.2.1", "x-api-key", "b")))
	assert.True(t, same(t, key, a, from("192.0.2.1", "x-api-key", "a", "x-api-key", "a")), "the same twice is one value")
	assert.True(t, same(t, key, from("192.0.2.1"), from("192.0.2.1", "x-api-key", "")), "an empty value is none")
	assert.True(t, same(t, key, from("192.0.2.1", "x-api-key", "a", "x-api-key", "1"),
		from("192.0.2.2", "x-api-key", "2", "x-api-key", "a")), "all calls with several values have one key")
	assert.False(t, same(t, key, a, from("192.0.2.1", "x-api-key", "a", "x-api-key", "b")))
	huge := strings.Repeat("a", 1<<20)
	assert.True(t, same(t, key, from("192.0.2.1", "x-api-key", huge), from("192.0.2.1", "x-api-key", huge)))
	assert.False(t, same(t, key, from("192.0.2.1", "x-api-key", huge), from("192.0.2.1", "x-api-key", huge+"b")))

	auth, err := rpclimit.MetadataValue("Authorization", nil)
	require.NoError(t, err)
	assert.True(t, same(t, auth, from("", "authorization", "Bearer t"), from("", "authorization", "bearer  t ")))

	h := limits.HasherOf(testclock.New().Burst(t, 1))
	_, limited := auth(h, from("192.0.2.1"))
	assert.False(t, limited, "without a fallback it has no limit")
	none := from("192.0.2.1")
	none.Metadata = nil
	_, limited = auth(h, none)
	assert.False(t, limited)

	for _, name := range []string{"", "a b", ":authority", "grpc-timeout", "Grpc-Status", "é"} {
		_, err := rpclimit.MetadataValue(name, nil)
		assert.Error(t, err, name)
	}
}

// undecodable is metadata that cannot be decoded.
type undecodable struct{}

func (undecodable) Values(context.Context, string) ([]string, bool) { return []string{"x"}, false }

func TestValuesThatCannotBeDecodedHaveOneKey(t *testing.T) {
	key, err := rpclimit.MetadataValue("token-bin", rpclimit.Peer)
	require.NoError(t, err)
	bad := from("192.0.2.1")
	bad.Metadata = undecodable{}
	other := from("192.0.2.2")
	other.Metadata = undecodable{}
	assert.True(t, same(t, key, bad, other))
	assert.True(t, same(t, key, bad, from("192.0.2.3", "token-bin", "a", "token-bin", "b")))
}

func method(name string) rpclimit.Call {
	c := from("192.0.2.1")
	c.Method = name
	return c
}

func TestMethod(t *testing.T) {
	assert.False(t, same(t, rpclimit.Method, method("/a.B/C"), method("/a.B/D")))
	made, up := method("/a.B/C1"), method("/a.B/C2")
	made.Unknown, up.Unknown = true, true
	assert.True(t, same(t, rpclimit.Method, made, up), "methods that a client makes up are one")

	known, err := rpclimit.MethodOf("/a.B/C", "/a.B/*", "/x.Y/*")
	require.NoError(t, err)
	assert.False(t, same(t, known, method("/a.B/C"), method("/a.B/D")))
	assert.True(t, same(t, known, method("/a.B/D"), method("/a.B/E")))
	assert.False(t, same(t, known, method("/a.B/D"), method("/x.Y/D")))
	assert.True(t, same(t, known, method("/u.V/1"), method("/u.V/2")))
	assert.True(t, same(t, known, method("/u.V/1"), method("/A.B/C")))
	assert.True(t, same(t, known, method(""), method("/")))
}

func TestTarget(t *testing.T) {
	a, b := from(""), from("")
	a.Target, b.Target = "dns:///a", "dns:///b"
	assert.True(t, same(t, rpclimit.Target, a, a))
	assert.False(t, same(t, rpclimit.Target, a, b))
}

func TestJoin(t *testing.T) {
	x, err := rpclimit.MetadataValue("x", rpclimit.Everyone)
	require.NoError(t, err)
	y, err := rpclimit.MetadataValue("y", rpclimit.Everyone)
	require.NoError(t, err)
	key := rpclimit.Join(x, y)
	assert.False(t, same(t, key, from("", "x", "a", "y", "bc"), from("", "x", "ab", "y", "c")))
	assert.True(t, same(t, key, from("", "x", "a", "y", "b"), from("", "x", "a", "y", "b")))
	assert.True(t, same(t, x, from("", "x", "a"), from("", "x", "a")))
	_, limited := rpclimit.Join(x, nil)(limits.HasherOf(testclock.New().Burst(t, 1)), from(""))
	assert.False(t, limited)
}

func TestMethodsThatAreNone(t *testing.T) {
	for _, name := range []string{"", "/", "a.B/C", "/a.B", "/a.B/", "//C", "/a.B/C/D", "/a.*/C", "/a.B/C*", "/*/*"} {
		_, err := rpclimit.MatchMethods(name)
		assert.ErrorContains(t, err, "is not a method", name)
	}
	_, err := rpclimit.MatchMethods()
	assert.ErrorContains(t, err, "at least one")
	_, err = rpclimit.MatchMethods("/a.B/*", "/a.B/*")
	assert.ErrorContains(t, err, "twice")
	_, err = rpclimit.MethodOf("x")
	assert.ErrorContains(t, err, "MethodOf")
	_, err = rpclimit.MethodCosts(map[string]uint64{"x": 1}, 1)
	assert.ErrorContains(t, err, "MethodCosts")
}

func TestMatchMethods(t *testing.T) {
	match, err := rpclimit.MatchMethods("/a.B/C", "/x.Y/*")
	require.NoError(t, err)
	for name, want := range map[string]bool{"/a.B/C": true, "/a.B/D": false, "/x.Y/Z": true, "/x.Y/": true, "/x.y/Z": false,
		"/a.B/C/": false, "": false, "/x.Y/Z/W": false} {
		assert.Equal(t, want, match(method(name)), name)
	}
}

func TestMethodCosts(t *testing.T) {
	costs, err := rpclimit.MethodCosts(map[string]uint64{"/a.B/*": 3, "/a.B/Free": 0}, 1)
	require.NoError(t, err)
	l := one(t, rpclimit.Limit{Limiter: testclock.New().Burst(t, 5), Cost: costs})
	assert.Equal(t, []rpclimit.Code{ok, refused}, codes(l, 2, method("/a.B/C")))
	assert.Equal(t, []rpclimit.Code{ok, ok, refused}, codes(l, 3, method("/other.S/M")))
	assert.Equal(t, []rpclimit.Code{ok, ok}, codes(l, 2, method("/a.B/Free")))
}

func TestHealthAndReflection(t *testing.T) {
	health := method("/grpc.health.v1.Health/Check")
	limit := rpclimit.Limit{Limiter: testclock.New().Burst(t, 1)}
	assert.Equal(t, []rpclimit.Code{ok, refused}, codes(one(t, limit), 2, health), "exempt only if asked")
	exempt := one(t, limit, rpclimit.Skip(rpclimit.HealthAndReflection))
	assert.Equal(t, []rpclimit.Code{ok, ok}, codes(exempt, 2, health))
	assert.Equal(t, []rpclimit.Code{refused}, codes(exempt, 1, method("/grpc.health.v1.Health/Made")))
	health.Unknown = true
	assert.Equal(t, []rpclimit.Code{refused}, codes(exempt, 1, health), "another server's may be anything")
}

func TestParsePeer(t *testing.T) {
	for text, want := range map[string]netip.Addr{
		"192.0.2.1:80": netip.MustParseAddr("192.0.2.1"), "192.0.2.1": netip.MustParseAddr("192.0.2.1"),
		"[2001:db8::1]:80": netip.MustParseAddr("2001:db8::1"), "2001:db8::1": netip.MustParseAddr("2001:db8::1"),
		"": {}, "@": {}, "bufconn": {}, "/run/socket": {},
	} {
		assert.Equal(t, want, rpclimit.ParsePeer(text), text)
	}
	for _, text := range []string{"", "192.0.2.1:80", "[2001:db8::1]:80"} {
		assert.Zero(t, testalloc.PerCall(func() { rpclimit.ParsePeer(text) }), text)
	}
}
