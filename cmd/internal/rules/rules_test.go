package rules

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

func compile(t *testing.T, text string) []*Rule {
	t.Helper()
	file, err := rulefile.Parse("weir.yaml", []byte(text))
	require.NoError(t, err)
	ip, err := ClientIP(file)
	require.NoError(t, err)
	all, err := Compile(file, ip)
	require.NoError(t, err)
	return all
}

func keyOf(t *testing.T, l httplimit.Limit, r *http.Request) engine.Key {
	t.Helper()
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(10))
	require.NoError(t, err)
	defer limiter.Close()
	key, ok := l.Key(limits.HasherOf(limiter), r)
	require.True(t, ok)
	assert.NotEqual(t, key, limiter.Key("else"))
	return key
}

// TestTypedKeys: a value typed into the form finds the bucket of the requests with this value.
func TestTypedKeys(t *testing.T) {
	all := compile(t, `
client_ip: {ipv6_prefix: 56}
rules:
  - {name: a, rate: 1/s}
  - {name: b, rate: 1/s, key: header:X-Api-Key}
  - {name: c, rate: 1/s, key: [ip, path, method, host, "cookie:id"]}
  - {name: d, rate: 1/s, key: global}
  - {name: e, rate: 1/s, key: header:X-Api-Key or global}
  - {name: f, rate: 1/s, key: header:X-Api-Key or method}
  - {name: g, rate: 1/s, key: [ip, "query:token"]}`)
	r := httptest.NewRequest(http.MethodPost, "http://API.example.com:80//x/../login", nil)
	r.RemoteAddr = "[2001:db8::1]:80"
	r.AddCookie(&http.Cookie{Name: "id", Value: "7"})
	withHeader := r.Clone(t.Context())
	withHeader.Header.Set("X-Api-Key", "alice")
	withQuery := r.Clone(t.Context())
	withQuery.URL.RawQuery = "x=1&token=a+b%26c"
	for _, c := range []struct {
		rule  int
		r     *http.Request
		texts []string
	}{
		{0, r, []string{"2001:db8::ffff"}},
		{0, r, []string{"[2001:db8::1]:80"}},
		{1, r, []string{"2001:db8::1"}},
		{1, withHeader, []string{"alice"}},
		{2, r, []string{"2001:db8::1", "/login/", "POST", "api.example.com", "7"}},
		{3, r, nil},
		{4, withHeader, []string{"alice"}},
		{4, r, []string{""}},
		{5, withHeader, []string{"alice"}},
		{5, r, []string{"POST"}},
		{6, withQuery, []string{"2001:db8::1", "a b&c"}},
	} {
		rule := all[c.rule]
		l := rule.Limit()
		assert.Equal(t, keyOf(t, l, c.r), keyOf(t, l, rule.Typed(c.texts)), "%s %q", rule.Name, c.texts)
	}
}

// TestKeyTexts: the texts of a key are the values from which it is made.
func TestKeyTexts(t *testing.T) {
	all := compile(t, `
rules:
  - {name: a, rate: 1/s, key: [ip, path, method, host, header:X-Plan or ip]}
  - {name: b, rate: 1/s, key: global}
  - {name: c, rate: 1/s, key: [ip, header:X-Plan or none]}`)
	r := httptest.NewRequest("MADEUP", "http://API.example.com:80//x/../login?q", nil)
	r.RemoteAddr = "[::ffff:192.0.2.1]:80"
	assert.Equal(t, []string{"ip:192.0.2.1", "text:/login", "text:other", "text:api.example.com", "ip:192.0.2.1"},
		all[0].KeyTexts(r))
	assert.Equal(t, []string{"number:0"}, all[1].KeyTexts(r))
	assert.Empty(t, all[2].KeyTexts(r), "the rule does not count it")
	r.Header.Set("X-Plan", "gold")
	assert.Equal(t, []string{"ip:192.0.2.1", "text:gold"}, all[2].KeyTexts(r))
}

// TestLimit: costs, tiers and refunds have functions only if the rule needs more than the default.
func TestLimit(t *testing.T) {
	all := compile(t, `
rules:
  - {name: plain, rate: 1/s}
  - name: all
    rate: 1/s
    burst: 9
    shadow: true
    match: {method: POST}
    cost: {header: X-Cost, default: 2, max: 5}
    refund_status: [2xx, 404]
    tiers: {header: X-Plan, values: {gold: {burst: 20}}}
  - {name: two, rate: 2/s, cost: 2}`)
	plain := all[0].Limit()
	assert.Nil(t, plain.Cost)
	assert.Nil(t, plain.Tier)
	assert.Nil(t, plain.Refund)
	full := all[1].Limit()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	assert.True(t, full.Shadow)
	assert.True(t, full.Match(r))
	assert.Equal(t, 0, full.Tier(r))
	r.Header.Set("X-Plan", "gold")
	assert.Equal(t, 1, full.Tier(r))
	for text, want := range map[string]uint64{"": 2, "x": 2, "0": 2, "-1": 2, "3": 3, "99": 5,
		"99999999999999999999": 5, "1e3": 2} {
		r.Header.Set("X-Cost", text)
		assert.Equal(t, want, full.Cost(r), text)
	}
	for status, want := range map[int]bool{0: false, 199: false, 200: true, 299: true, 300: false, 404: true} {
		assert.Equal(t, want, full.Refund(r, status), status)
	}
	assert.Equal(t, uint64(2), all[2].Limit().Cost(r))
}

// TestTiersAndCostsAreReadAsServersDo: blanks around a value do not matter, even over HTTP/2, which keeps them. The
// spelling of a scheme of credentials, such as Bearer, does not matter either.
func TestTiersAndCostsAreReadAsServersDo(t *testing.T) {
	l := compile(t, `
rules:
  - name: a
    rate: 1/s
    burst: 9
    cost: {header: X-Cost, max: 5}
    tiers: {header: Authorization, values: {"bearer t": {burst: 20}}}`)[0].Limit()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, value := range []string{"Bearer t", "bearer t", " BEARER\tt "} {
		r.Header.Set("Authorization", value)
		assert.Equal(t, 1, l.Tier(r), "%q", value)
	}
	r.Header.Set("Authorization", "Bearer T")
	assert.Equal(t, 0, l.Tier(r))
	for text, want := range map[string]uint64{" 3": 3, "3\t": 3, " ": 1, "1 2": 1} {
		r.Header.Set("X-Cost", text)
		assert.Equal(t, want, l.Cost(r), "%q", text)
	}
}

// TestReads: Reads lists every source that a request may lack, by the purpose of the source.
func TestReads(t *testing.T) {
	all := compile(t, `
rules:
  - name: all
    rate: 2/s
    match: {host: a.example, header: {X-Env: prod}, path: /a, method: GET, query: {q: 1}, not: {header: {X-No: 1}}}
    key: [ip, path, method, host, cookie:id or header:X-Key, query:p]
    cost: {header: X-Cost, max: 2}
    tiers: {header: X-Plan, values: {gold: {burst: 20}}}
  - {name: nothing, rate: 1/s, match: {path: /a}}`)
	host := rulefile.Source{Kind: rulefile.SourceHost}
	assert.Equal(t, Reads{
		Match: []rulefile.Source{host, header("X-Env"), {Kind: rulefile.SourceQuery, Name: "q"}, header("X-No")},
		Key: []rulefile.Source{host, {Kind: rulefile.SourceCookie, Name: "id"}, header("X-Key"),
			{Kind: rulefile.SourceQuery, Name: "p"}},
		Tier: []rulefile.Source{header("X-Plan")},
		Cost: []rulefile.Source{header("X-Cost")},
	}, all[0].Reads())
	assert.Equal(t, Reads{}, all[1].Reads())
}
