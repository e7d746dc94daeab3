package httplimit_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

func header(t testing.TB, name string, fallback httplimit.KeyFunc) httplimit.KeyFunc {
	t.Helper()
	key, err := httplimit.Header(name, fallback)
	require.NoError(t, err)
	return key
}

func textOf(t *testing.T, key httplimit.KeyFunc, r *http.Request) string {
	t.Helper()
	text, limited := key.Text(r)
	require.True(t, limited)
	return text
}

func TestHeaderKey(t *testing.T) {
	key := header(t, "x-api-key", httplimit.RemoteIP)
	assert.Equal(t, "text:secret", textOf(t, key, getFrom(direct, "X-API-Key", "secret", "X-API-Key", "secret")))
	assert.Equal(t, "ip:198.51.100.7", textOf(t, key, getFrom(direct)))
	assert.Equal(t, "ip:198.51.100.7", textOf(t, key, getFrom(direct, "X-API-Key", "")))
	_, limited := header(t, "X-API-Key", nil).Text(getFrom(direct))
	assert.False(t, limited)
	for _, name := range []string{"", "a b", "a:b", "é", "Host", "transfer-encoding", "Trailer"} {
		_, err := httplimit.Header(name, nil)
		assert.ErrorContains(t, err, "Header(")
	}
}

func TestCookieKey(t *testing.T) {
	key, err := httplimit.Cookie("session", httplimit.RemoteIP)
	require.NoError(t, err)
	assert.Equal(t, "text:abc", textOf(t, key, getFrom(direct, "Cookie", "a=b; session=abc")))
	assert.Equal(t, "ip:198.51.100.7", textOf(t, key, getFrom(direct, "Cookie", "session=; x=y")))
	assert.Equal(t, "ip:198.51.100.7", textOf(t, key, getFrom(direct, "Cookie", ";;=;\x00")))
	_, err = httplimit.Cookie("a=b", nil)
	assert.ErrorContains(t, err, `Cookie("a=b")`)
}

// TestSeveralValuesHaveOneKey: a client sends a second value, before or after the first. It gets no new bucket, and
// does not escape the limit.
func TestSeveralValuesHaveOneKey(t *testing.T) {
	cookie, err := httplimit.Cookie("id", nil)
	require.NoError(t, err)
	apiKey := header(t, "X-API-Key", nil)
	for key, requests := range map[*httplimit.KeyFunc][]*http.Request{
		&apiKey: {
			getFrom(direct, "X-API-Key", "good", "X-API-Key", "1"),
			getFrom(direct, "X-API-Key", "2", "X-API-Key", "good"),
			getFrom(direct, "X-API-Key", "", "X-API-Key", "good"),
		},
		&cookie: {
			getFrom(direct, "Cookie", "id=good; id=1"), getFrom(direct, "Cookie", "id=2", "Cookie", "a=b;id=good"),
			getFrom(direct, "Cookie", `id=good; id="a`), getFrom(direct, "Cookie", "id=good; id=\xff"),
			getFrom(direct, "Cookie", strings.Repeat("a=b;", 1000)+"id=good; id=1"),
			getFrom(direct, "Cookie", strings.Repeat("a=b;", 1024)+"id=good"),
		},
	} {
		for _, r := range requests {
			assert.Equal(t, "number:0", textOf(t, *key, r), r.Header)
		}
	}
	// net/http ignores some cookies that a server may read.
	assert.Equal(t, "text:good", textOf(t, cookie, getFrom(direct, "Cookie",
		strings.Repeat("a=b;", 1000)+" id = good ")))
	assert.Equal(t, "text:a,\xff", textOf(t, cookie, getFrom(direct, "Cookie", `id="a,`+"\xff\"")))
	assert.Equal(t, "text:good", textOf(t, cookie, getFrom(direct, "Cookie", `id="good"; id=good`)))
}

// TestSpellingsOfACookieHaveOneKey: a client spells its cookie in another way, which some server reads as the same
// value (see package spelling). It gets no fresh bucket, and does not escape the limit.
func TestSpellingsOfACookieHaveOneKey(t *testing.T) {
	cookie, err := httplimit.Cookie("sid", nil)
	require.NoError(t, err)
	for _, line := range []string{
		"sid=V", `sid="V"`, `sid="\126"`, "sid=%56", `sid="Vx`, "SID=V", "s%69d=V", "sid = V",
		"a=b, sid=V", "a=b sid=V", "a=b c, sid = V d=e", `sid="V", x`, "a=b;;  sid=V", "a, sid=V", " ,\t sid\t=\tV",
		"sid=V; SID=%56; x=y, sid=V",
		// If the line is read as UTF-8 or as Latin-1, Python's strip or JavaScript's trim removes these blanks.
		"sid=V\u00a0", "sid=\u3000V", "\u2028sid=V", "sid\u0085=V", "sid=V\ufeff", "sid=V\xa0\x85\xa0", "\x85sid\xa0=\xa0V",
		"a=b,\xa0sid=V\u00a0", "sid=\"V\"\xa0", "sid=V \u00a0\t\x85",
	} {
		assert.Equal(t, "text:V", textOf(t, cookie, getFrom(direct, "Cookie", line)), line)
	}
	for _, line := range []string{
		"sid=junk; SID=V", "sid=junk; a=b, sid=V", "sid=junk, sid=V", "a=b sid = V; sid=junk", `sid="junk"; sid="\126"`,
		// Some servers end the value at the comma or blank. So these cookies must share a key. Otherwise a session
		// a,b,c could have several buckets.
		"sid=V,x", "sid=V x=1", "sid=V,", "sid=,V", "sid=V%2Cx,y", "sid=V\xa0 x", "sid =,", "sid=V; SID=%56, sid=V",
	} {
		assert.Equal(t, "number:0", textOf(t, cookie, getFrom(direct, "Cookie", line)), line)
	}
	for _, line := range []string{"sid=a+b+c", "sid=a%2Bb+c", "sid=a+b%2bc", "sid=a%20b%2Bc", `sid="a b c"`} {
		assert.Equal(t, "text:a b c", textOf(t, cookie, getFrom(direct, "Cookie", line)), "of base64, too: %s", line)
	}
	for _, line := range []string{"a=b", "sid=", `sid=""`, "a=sid", "a=b, sid", "xsid=V", "sid2=V", "a=b,", ", "} {
		_, limited := cookie.Text(getFrom(direct, "Cookie", line))
		assert.False(t, limited, line)
	}
	value, ok := httplimit.CookieValue(getFrom(direct, "Cookie", strings.Repeat("a ", 30_000)+"sid=V"), "sid")
	assert.True(t, ok)
	assert.Equal(t, "V", value, "a long line, soon")
}

func TestSpellingsOfCredentialsHaveOneKey(t *testing.T) {
	key := header(t, "Authorization", nil)
	for _, lines := range [][]string{
		{"Bearer V"}, {"bearer V"}, {"BEARER \t V"}, {"Bearer V", "bearer  V"},
		{"Bearer V\xa0"}, {"Bearer \x85V"}, {"bearer \u00a0\tV\u3000\xa0"}, {"Bearer V", "Bearer V\x85"},
	} {
		r := getFrom(direct)
		r.Header["Authorization"] = lines
		assert.Equal(t, "text:Bearer V", textOf(t, key, r), lines)
	}
	assert.Equal(t, "text:bearer  V", textOf(t, header(t, "X-A", nil), getFrom(direct, "X-A", "bearer  V")),
		"no credentials")
}

func TestRequestKeys(t *testing.T) {
	r := get("http://Example.COM:8080/a%20b?q")
	assert.Equal(t, "text:example.com", textOf(t, httplimit.Host, r))
	assert.Equal(t, "text:/a b", textOf(t, httplimit.Path, r))
	assert.Equal(t, "text:GET", textOf(t, httplimit.Method, r))
	opaque := get("/")
	opaque.URL = &url.URL{Scheme: "http", Opaque: "http://h/login"}
	assert.Equal(t, "number:0", textOf(t, httplimit.Path, opaque), "no path, and no text either")
	assert.Equal(t, "number:0", textOf(t, httplimit.Everyone, r))
	for host, want := range map[string]string{
		"example.com": "example.com", "example.com.": "example.com", "[2001:DB8::1]:80": "2001:db8::1",
		"[2001:db8::1]": "2001:db8::1", "": "", ":80": "", "a:b:c": "a:b:c", "example.com.:80": "example.com",
	} {
		r.Host = host
		assert.Equal(t, "text:"+want, textOf(t, httplimit.Host, r), host)
	}
	r.Method = "BREW"
	other := textOf(t, httplimit.Method, r)
	r.Method = "WHEN"
	assert.Equal(t, other, textOf(t, httplimit.Method, r), "made-up methods have one bucket")
	r.Method = ""
	assert.Equal(t, "text:GET", textOf(t, httplimit.Method, r))
}

// TestKeysAreThoseOfTheLimiter: Reset and Peek find the key that a KeyFunc charges.
func TestKeysAreThoseOfTheLimiter(t *testing.T) {
	c := testclock.New()
	for _, options := range [][]engine.Option{nil, {engine.HashStable()}} {
		l := c.Limiter(t, engine.TokenBucket(engine.PerSecond(1), 5), options...)
		h := limits.HasherOf(l)
		assert.Equal(t, l.Key("a"), h.Key("a"))
		assert.Equal(t, l.Key("a"), h.KeyBytes([]byte("a")))
		assert.Equal(t, l.KeyUint64(7), h.KeyUint64(7))
		addr := netip.MustParseAddr("198.51.100.7")
		key, limited := httplimit.RemoteIP(h, getFrom(direct))
		assert.True(t, limited)
		assert.Equal(t, l.KeyAddr(addr), key)
	}
}

// TestKeyKindsDiffer: an address and a header with the same text have different keys, in memory and in a store.
func TestKeyKindsDiffer(t *testing.T) {
	l := testclock.New().Burst(t, 5)
	key := header(t, "X-API-Key", httplimit.RemoteIP)
	address, _ := key(limits.HasherOf(l), getFrom(direct))
	forged, _ := key(limits.HasherOf(l), getFrom(proxy, "X-API-Key", "198.51.100.7"))
	assert.NotEqual(t, address, forged)
	assert.NotEqual(t, textOf(t, key, getFrom(direct)), textOf(t, key, getFrom(proxy, "X-API-Key", "198.51.100.7")))
}

func TestJoin(t *testing.T) {
	a, b := header(t, "A", httplimit.RemoteIP), header(t, "B", nil)
	join := httplimit.Join(a, b)
	first := textOf(t, join, getFrom(direct, "A", "a", "B", "bc"))
	second := textOf(t, join, getFrom(direct, "A", "ab", "B", "c"))
	assert.NotEqual(t, first, second)
	assert.Equal(t, "text:6:text:a7:text:bc", first)
	_, limited := join.Text(getFrom(direct, "A", "a"))
	assert.False(t, limited, "one part says that the limit does not apply")
	assert.Equal(t, "text:x", textOf(t, httplimit.Join(a), getFrom(direct, "A", "x")))
	inner := httplimit.Join(a, httplimit.Join(b, httplimit.Method), httplimit.Everyone)
	assert.Equal(t, "text:6:text:a24:text:7:text:bc8:text:GET8:number:0",
		textOf(t, inner, getFrom(direct, "A", "a", "B", "bc")))
}

// TestJoinKeepsNoLongKey: a request has a key of a megabyte. The key of the next request contains nothing of it.
func TestJoinKeepsNoLongKey(t *testing.T) {
	join := httplimit.Join(header(t, "A", nil), httplimit.Method)
	long := textOf(t, join, getFrom(direct, "A", string(make([]byte, 1<<20))))
	assert.Len(t, long, len("text:1048581:text:")+1<<20+len("8:text:GET"))
	assert.Equal(t, "text:6:text:a8:text:GET", textOf(t, join, getFrom(direct, "A", "a")))
}
