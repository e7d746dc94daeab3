package reading

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func prefixOf(t testing.TB, text string) Path {
	t.Helper()
	p, err := ParsePrefix(text)
	require.NoError(t, err)
	return p
}

func regexpOf(t testing.TB, text string) Path {
	t.Helper()
	p, err := ParseRegexp(text)
	require.NoError(t, err)
	return p
}

// sameAsText returns text patterns for the patterns in the variable patterns, under the same names. Each matches at
// least the paths that its pattern matches.
func sameAsText(t testing.TB) map[string][]Path {
	return map[string][]Path{
		"login":  {prefixOf(t, "/login"), prefixOf(t, "/log"), regexpOf(t, "^/login$"), regexpOf(t, "login")},
		"search": {prefixOf(t, "/users/"), regexpOf(t, "^/users/[^/]+/search$"), regexpOf(t, "/Search$")},
		"admin":  {prefixOf(t, "/admin/"), regexpOf(t, "^/admin/")},
		"files":  {prefixOf(t, "/files"), regexpOf(t, "^/files(/.*)?$")},
		"root":   {prefixOf(t, "/"), regexpOf(t, "^/$")},
		"script": {prefixOf(t, "/run.php"), regexpOf(t, `^/run\.php$`)},
	}
}

// TestNoReadingGoesAroundAText: a path meets a pattern of segments. Then it also meets text patterns that match the
// same paths or more.
func TestNoReadingGoesAroundAText(t *testing.T) {
	texts := sameAsText(t)
	for _, p := range paths {
		u, err := url.ParseRequestURI(p.raw)
		require.NoError(t, err, p.raw)
		for _, name := range strings.Fields(p.want) {
			for _, path := range texts[name] {
				m := Match{Paths: []Path{path}}
				r := &http.Request{Method: http.MethodGet, URL: u}
				assert.True(t, m.Meets(r, nil), "%s with %s", p.raw, path)
				kept, _ := once(r)
				assert.True(t, NewIndex(&m).Meets(0, kept, nil), "%s with %s, read once", p.raw, path)
			}
		}
	}
}

// FuzzText is [TestNoReadingGoesAroundAText] for random paths.
func FuzzText(f *testing.F) {
	for _, p := range paths {
		f.Add(p.raw)
	}
	texts := sameAsText(f)
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.ParseRequestURI(raw)
		if err != nil || len(raw) > 1000 {
			t.Skip("no request target, or one longer than is tried here")
		}
		r := &http.Request{Method: http.MethodGet, URL: u}
		for name, pattern := range patterns {
			of := Match{Paths: patternsOf(t, pattern.text)}
			if !of.Meets(r, nil) {
				continue
			}
			for _, path := range texts[name] {
				m := Match{Paths: []Path{path}}
				assert.True(t, m.Meets(r, nil), "%q with %s", raw, path)
			}
		}
	})
}

// TestPathsOfText checks which paths meet a prefix or an expression for a limit, and which match for a route.
func TestPathsOfText(t *testing.T) {
	for _, c := range []struct {
		path            Path
		keepCase        bool
		raw             string
		meets, mentions bool
	}{
		{prefixOf(t, "/log"), false, "/login", true, true},
		{prefixOf(t, "/log"), false, "/LOGin", true, false},
		{prefixOf(t, "/log"), true, "/LOGin", false, false},
		{prefixOf(t, "/log"), false, "/x/log", false, false},
		{prefixOf(t, "/log/"), false, "/log", true, false},
		{prefixOf(t, "/log/"), false, "/log/", true, true},
		{prefixOf(t, "/log/"), false, "/login", false, false},
		{prefixOf(t, "/ADMIN"), false, "/admin./x", true, false},
		{prefixOf(t, "/a/b"), false, "/a./b", true, false},
		{regexpOf(t, `^/users/\d+$`), false, "/users/12", true, true},
		{regexpOf(t, `^/users/\d+$`), false, "/users/12/", true, false},
		{regexpOf(t, `^/users/\d+$`), false, "/users/12.json", true, false},
		{regexpOf(t, `^/users/\d+$`), false, "/users/12.a.json", true, false},
		{regexpOf(t, `^/users/\d+$`), false, "/users/x", false, false},
		{regexpOf(t, `\.css$`), false, "/a/b.CSS", true, false},
		{regexpOf(t, `\.css$`), false, "/a/b.css", true, true},
		{regexpOf(t, `^/a.b$`), false, "/a%0ab", true, true},
	} {
		r := httptest.NewRequest("GET", c.raw, nil)
		m := Match{Paths: []Path{c.path}, KeepCase: c.keepCase}
		assert.Equal(t, c.meets, m.Meets(r, nil), "%s with %s", c.raw, c.path)
		assert.Equal(t, c.mentions, m.Matches(r), "%s with %s", c.raw, c.path)
	}
	exact := Match{Paths: []Path{regexpOf(t, `^/users/\d+$`)}, KeepType: true}
	assert.False(t, exact.Meets(httptest.NewRequest("GET", "/users/12.json", nil), nil))
	both := Match{Paths: []Path{prefixOf(t, "/a"), regexpOf(t, "b|c")}}
	assert.Equal(t, "path prefix /a or regex b|c", both.String())
	assert.Equal(t, "/a/x", both.KeyPath(httptest.NewRequest("GET", "/A/x/", nil)))
}

// TestExpressionsReadSoMuch: if the readings of a path have more bytes than an expression reads, the path meets every
// expression.
func TestExpressionsReadSoMuch(t *testing.T) {
	m := &Match{Paths: []Path{regexpOf(t, "^/never$")}}
	for raw, want := range map[string]bool{
		"/" + strings.Repeat("a/", 20):             false,
		"/" + strings.Repeat("a", maxScan/2-2):     false,
		"/" + strings.Repeat("a", maxScan/2):       true,
		"/" + strings.Repeat("a.b/", 400):          true,
		"/" + strings.Repeat("a%2fb/", 200) + "x;": true,
	} {
		assert.Equal(t, want, m.Meets(httptest.NewRequest("GET", raw, nil), nil), "%.20s", raw)
		r, _ := once(httptest.NewRequest("GET", raw, nil))
		assert.Equal(t, want, NewIndex(m).Meets(0, r, nil), "%.20s", raw)
	}
}

func TestTextsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"login": "a prefix begins with a slash", "/a?b": "a query or fragment", "/%61": "without escapes",
		"/a//b": "empty segments", "//a": "empty segments", "/a//": "empty segments", "/a/../b": "empty segments", "": "a slash",
	} {
		_, err := ParsePrefix(text)
		assert.ErrorContains(t, err, want, text)
	}
	for text, want := range map[string]string{
		"": "an empty expression", "(": "missing closing )", "a)|(b": "unexpected )", "(?=a)": "invalid or unsupported Perl syntax",
	} {
		_, err := ParseRegexp(text)
		assert.ErrorContains(t, err, want, text)
	}
}
