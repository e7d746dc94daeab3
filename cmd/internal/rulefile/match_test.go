package rulefile

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/httplimit/reading"
)

func socket(r *http.Request) netip.Addr {
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	return addr.Addr()
}

// The function meant returns whether a request meets the match of the first rule, and whether it is exempt.
func meant(t *testing.T, f *File, method, target, from string, header ...string) (meets, exempt bool) {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = from + ":1"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	for _, m := range f.Exempt {
		exempt = exempt || m.IsCertain(r, socket)
	}
	return f.Rules[0].Match.Meets(r, socket), exempt
}

func TestMatchByClient(t *testing.T) {
	f, err := Parse("weir.yaml",
		[]byte("rules: [{name: a, rate: 1/s, match: {client: [10.0.0.0/8, 192.0.2.1, \"2001:db8::/32\"]}}]"))
	require.NoError(t, err)
	for from, want := range map[string]bool{
		"10.1.2.3": true, "192.0.2.1": true, "192.0.2.2": false, "11.0.0.1": false, "[2001:db8::5]": true, "[::1]": false,
	} {
		meets, _ := meant(t, f, "GET", "/", from)
		assert.Equal(t, want, meets, from)
	}
	assert.Equal(t, "client 10.0.0.0/8, 192.0.2.1 or 2001:db8::/32", f.Rules[0].Match.String())
}

// TestMatchByQuery: a rule finds a parameter if any server could read it in the query: with escapes, given twice, or
// after a semicolon.
func TestMatchByQuery(t *testing.T) {
	f, err := Parse("weir.yaml",
		[]byte("rules: [{name: a, rate: 1/s, match: {query: {debug: [\"1\", \"2\"], q: \"*\"}}}]"))
	require.NoError(t, err)
	for query, want := range map[string]bool{
		"debug=1&q=x": true, "q&debug=2": true, "%64ebug=%31&q=": true, "debug=0&debug=1&q": true, "debug=1;x&q": true,
		"a;debug=1;q": true, "debug=1": false, "debug=3&q": false, "Debug=1&q": true, "%zz&debug=1&q": true,
		"+debug=1&q":        true,
		"debug%00x=1%00y&q": true, "": false, "debug=%zz&q": false, "deb%u0075g=%u0031&q": true, "debug=%u31&q": false,
		"debug[]=1&q[0]": true, "DEBUG%5b7%5D=1&q": true, "debug]=1&q": false, "debug[=1&q": false,
	} {
		meets, _ := meant(t, f, "GET", "/?"+query, "10.0.0.1")
		assert.Equal(t, want, meets, query)
	}
	assert.Equal(t, "query debug: 1 or 2, any query q", f.Rules[0].Match.String())
	assert.Equal(t, []string{"a;b", "a"}, reading.QueryValues(&url.URL{RawQuery: "k=a;b"}, "k"))
	assert.Equal(t, []string{"%zza"}, reading.QueryValues(&url.URL{RawQuery: "K=%zz%61"}, "k"),
		"by another name, and a bad escape")
	assert.Equal(t, []string{"%zz", "x y"}, reading.QueryValues(&url.URL{RawQuery: "k=%zz&k=x+y"}, "k"))
	assert.Equal(t, []string{"%u0041", "A"}, reading.QueryValues(&url.URL{RawQuery: "k=%u0041"}, "k"), "as ASP.NET reads it, too")
}

// TestExceptionsAreCertain: an exception applies only if the request meets it in the reading of every server.
func TestExceptionsAreCertain(t *testing.T) {
	const exceptions = "[{path: [/health, /static/], method: GET}, {client: 10.0.0.0/8, header: {X-Probe: [a, b]}}, " +
		"{query: {probe: \"1\"}}]"
	for _, file := range []string{
		"rules: [{name: a, rate: 1/s, match: {not: " + exceptions + "}}]", "exempt: " + exceptions +
			"\nrules: [{name: a, rate: 1/s}]",
	} {
		f, err := Parse("weir.yaml", []byte(file))
		require.NoError(t, err)
		limited := func(method, target, from string, header ...string) bool {
			meets, exempt := meant(t, f, method, target, from, header...)
			return meets && !exempt
		}
		for target, want := range map[string]bool{
			"/health": false, "/static/a": false, "/health?x": false, "/": true, "/health/": true, "/HEALTH": true,
			"//health":  true,
			"/health;x": true, "/%68ealth": true, "/static/%2e%2e/login": true, "/static/../login": true,
			"/static/..%2flogin": true, "/x/../health": true, "/?probe=1": false, "/?probe=1&probe=1": false,
			"/?probe=1&probe=2": true, "/?probe=1;x": true, "/?PROBE=1": true, "/?probe=1&pro%u0062e=2": true,
			"/?probe=1&probe[]=1":        true,
			"/static/%c0%ae%c0%ae/login": true, "/static/what%3f": true, "/static/%23": true, "/static/caf%C3%A9": false,
			"/?probe=1&Probe=1": true,
		} {
			assert.Equal(t, want, limited("GET", target, "192.0.2.1"), target)
		}
		assert.False(t, limited("HEAD", "/health", "192.0.2.1"))
		assert.True(t, limited("get", "/health", "192.0.2.1"))
		assert.True(t, limited("POST", "/health", "192.0.2.1"))
		assert.False(t, limited("GET", "/", "10.0.0.1", "X-Probe", "a"))
		assert.True(t, limited("GET", "/", "10.0.0.1", "X-Probe", "a", "X-Probe", "c"))
		assert.True(t, limited("GET", "/", "10.0.0.1"))
		assert.True(t, limited("GET", "/", "11.0.0.1", "X-Probe", "a"))
	}
}
