package key_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"

	"github.com/weir-go/weir/caddylimit/internal/key"
	"github.com/weir-go/weir/caddylimit/internal/testcaddy"
	"github.com/weir-go/weir/limits"
)

func of(t *testing.T, k *key.Key, h httplimit.Hasher, values ...string) engine.Key {
	r := testcaddy.From("192.0.2.1:1234")
	for i, name := range []string{"X", "Y"} {
		if i < len(values) {
			r.Header.Set(name, values[i])
		}
	}
	got, limited := k.Key(h, testcaddy.Prepare(r, httptest.NewRecorder()))
	require.True(t, limited)
	return got
}

func newKey(t *testing.T, bits4, bits6 int, templates ...string) (*key.Key, httplimit.Hasher) {
	k, _, err := key.New(templates, bits4, bits6)
	require.NoError(t, err)
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1))
	require.NoError(t, err)
	t.Cleanup(func() { limiter.Close() })
	return k, limits.HasherOf(limiter)
}

// TestSpellingsOfAnAddressAreOneKey: a client that chooses its address's spelling has only one bucket.
func TestSpellingsOfAnAddressAreOneKey(t *testing.T) {
	whole, h := newKey(t, 0, 0, "{http.request.header.X}")
	for _, same := range [][]string{
		{"192.0.2.1", "::ffff:192.0.2.1", "::FFFF:c000:201", "0:0:0:0:0:ffff:192.0.2.1"},
		{"2001:db8::1", "2001:DB8:0:0::1", "2001:0db8::0001"},
		{"fe80::1", "fe80::1%eth0", "fe80::1%1"},
	} {
		for _, other := range same[1:] {
			assert.Equal(t, of(t, whole, h, same[0]), of(t, whole, h, other), "%s and %s", same[0], other)
		}
	}
	for _, different := range [][2]string{
		{"192.0.2.1", "192.0.2.2"}, {"2001:db8::1", "2001:db8::2"}, {"", "::"}, {"abc", "abd"}, {"::1%", "::1"},
	} {
		assert.NotEqual(t, of(t, whole, h, different[0]), of(t, whole, h, different[1]), "%q", different)
	}
}

// TestPrefixesAreOfTheFamilyOfTheAddress: the prefix for IPv4 applies to an IPv4 address in an IPv6 address. Otherwise
// all IPv4 addresses would have one bucket.
func TestPrefixesAreOfTheFamilyOfTheAddress(t *testing.T) {
	k, h := newKey(t, 24, 64, "{http.request.header.X}")
	assert.Equal(t, of(t, k, h, "192.0.2.1"), of(t, k, h, "192.0.2.250"))
	assert.Equal(t, of(t, k, h, "192.0.2.1"), of(t, k, h, "::ffff:192.0.2.250"))
	assert.NotEqual(t, of(t, k, h, "::ffff:192.0.2.1"), of(t, k, h, "::ffff:198.51.100.1"))
	assert.Equal(t, of(t, k, h, "2001:db8:0:1::1"), of(t, k, h, "2001:db8:0:1:ffff::"))
	assert.NotEqual(t, of(t, k, h, "2001:db8:0:1::1"), of(t, k, h, "2001:db8:0:2::1"))
	// If a value is not an address, it is not cut to a prefix.
	assert.NotEqual(t, of(t, k, h, "192.0.2.1 a"), of(t, k, h, "192.0.2.1 b"))
	assert.NotEqual(t, of(t, k, h, "1.2.3.4.5"), of(t, k, h, "1.2.3.4.6"))
}

// TestPartsDoNotRunIntoEachOther: a client's text in one part cannot make another client's key.
func TestPartsDoNotRunIntoEachOther(t *testing.T) {
	k, h := newKey(t, 0, 0, "{http.request.header.X}", "{http.request.header.Y}")
	assert.NotEqual(t, of(t, k, h, "a", "bc"), of(t, k, h, "ab", "c"))
	assert.NotEqual(t, of(t, k, h, "a", ""), of(t, k, h, "", "a"))
	assert.Equal(t, of(t, k, h, "a", "b"), of(t, k, h, "a", "b"))
}

// TestEmptyKeysAreOneKey: requests without the key's header share a bucket.
func TestEmptyKeysAreOneKey(t *testing.T) {
	for _, text := range []string{"{http.request.header.X}", "{http.request.header.X}{http.request.header.Y}", "{http.vars.none}"} {
		k, h := newKey(t, 0, 0, text)
		assert.Equal(t, of(t, k, h), of(t, k, h), text)
		assert.Equal(t, h.Key(""), of(t, k, h), text)
	}
	k, h := newKey(t, 0, 0, "")
	assert.Equal(t, h.Key(""), of(t, k, h, "a"))
}

func TestTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"static": "static", "a-{http.request.header.X}-b": "a-1-b", `\{x\}`: "{x}", "{http.request.method}": "GET",
		"{http.request.remote.host}": "192.0.2.1", "{http.vars.client_ip}": "192.0.2.1", "127.0.0.1": "127.0.0.1",
	} {
		k, warnings, err := key.New([]string{text}, 0, 0)
		require.NoError(t, err, text)
		assert.Empty(t, warnings, text)
		r := testcaddy.From("192.0.2.1:1234")
		r.Header.Set("X", "1")
		assert.Equal(t, want, k.Text(testcaddy.Prepare(r, httptest.NewRecorder())), text)
	}
}

func TestBadTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"{http.request.remote.host":   "the brace at byte 0 is not closed",
		"a{b{http.request.method}":    "is not a placeholder",
		"{}":                          "{} is not a placeholder",
		"{http.request.remote.hots}":  "no placeholder {http.request.remote.hots}",
		"{http.request.client_ip}":    "no placeholder {http.request.client_ip}",
		"{http.request.header.host}":  "want {http.request.host}",
		"a {http.request.heder.X-Id}": "no placeholder {http.request.heder.X-Id}",
	} {
		_, _, err := key.Parse(text)
		assert.ErrorContains(t, err, want, text)
	}
	for text, want := range map[string]string{
		"{http.request.remote}":      "differs for every connection",
		"{http.request.remote.port}": "differs for every connection",
		"{http.request.uuid}":        "differs for every request",
		"{http.request.duration}":    "differs for every request",
		"{remotehost}":               "not one of Caddy's placeholders",
	} {
		_, warnings, err := key.Parse(text)
		require.NoError(t, err, text)
		require.Len(t, warnings, 1, text)
		assert.Contains(t, warnings[0], want, text)
	}
	for _, good := range []string{
		"{http.request.tls.client.fingerprint}", "{http.request.local.host}", "{http.request.cookie.a}", "{http.request.orig_uri.path}",
		"{http.request.uri.path.0}", "{http.request.host.labels.1}", "{http.request.remote.host/24,64}", "{http.auth.user.id}", "{env.HOME}",
		"{http.request.body}", "{http.regexp.a.1}",
	} {
		_, warnings, err := key.Parse(good)
		assert.NoError(t, err, good)
		assert.Empty(t, warnings, good)
	}
	for _, bits := range [][2]int{{-1, 0}, {33, 0}, {0, -1}, {0, 129}} {
		_, _, err := key.New([]string{"a"}, bits[0], bits[1])
		assert.ErrorContains(t, err, "or 0 for the whole address")
	}
}
