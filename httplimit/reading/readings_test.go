package reading

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
)

// patternsOf parses the texts and returns the patterns.
func patternsOf(t testing.TB, texts ...string) (all []Path) {
	t.Helper()
	for _, text := range texts {
		p, err := ParsePath(text)
		require.NoError(t, err)
		all = append(all, p)
	}
	return all
}

// patterns has patterns of a rule file by name. Each has an expression for the paths that a server serves if the
// pattern is a route of the server.
var patterns = map[string]struct {
	text   string
	served *regexp.Regexp
}{
	"login":  {"/login", regexp.MustCompile(`^/login/?$`)},
	"search": {"/users/{id}/search", regexp.MustCompile(`^/users/[^/]+/search/?$`)},
	"admin":  {"/admin/", regexp.MustCompile(`^/admin(/.*)?$`)},
	"files":  {"/files/{rest...}", regexp.MustCompile(`^/files(/.*)?$`)},
	"root":   {"/{$}", regexp.MustCompile(`^/$`)},
	"script": {"/run.php", regexp.MustCompile(`^/run\.php/?$`)},
}

// paths has paths in many spellings. For each path, want has the names of the patterns that a request for the path must
// meet.
var paths = []struct{ raw, want string }{
	{"/login", "login"}, {"/login/", "login"}, {"/LOGIN", "login"}, {"/Login/", "login"}, {"//login", "login root"},
	{"///login//", "login root"}, {"/./login", "login"}, {"/login/.", "login"}, {"/login/./", "login"},
	{"/x/../login", "login"}, {"/../login", "login"}, {"/../../login", "login"}, {"/login/x/..", "login"},
	{"/%6cogin", "login"}, {"/%6Cogin", "login"}, {"/%6c%6f%67%69%6e", "login"}, {"/%4c%4fGIN", "login"},
	{"/login%2f", "login"}, {"/%2flogin", "login"}, {"/%2Flogin%2F", "login"}, {"/login%2f.", "login"},
	{"/x%2f..%2flogin", "login"}, {"/x%2f%2e%2e%2flogin", "login"}, {"/%2e/login", "login"},
	{"/%2e%2e/login", "login"}, {"/x/%2e%2e/login", "login"}, {"/x/.%2e/login", "login"},
	{"/login;x", "login"}, {"/login;", "login"}, {"/login;x=1;y=2", "login"}, {"/login;x/", "login"},
	{"/;x/login", "login"}, {"/login/;x", "login"}, {"/login%3bx", "login"}, {"/login%3Bx/", "login"},
	{"/x/..;/login", "login"}, {"/x/..;y/login", "login"}, {"/x/%2e%2e;/login", "login"},
	{"/x/..%3b/login", "login"}, {"/.;/login", "login"}, {"/x;a/..;b/login;c", "login"},
	{`/\login`, "login"}, {"/%5clogin", "login"}, {"/login%5c", "login"}, {"/x%5c..%5clogin", "login"},
	{"/x/..%5clogin", "login"}, {"/login%5c;x", "login"}, {"/LOGIN;X%2f", "login"},
	{"/login?a=/b", "login"}, {"/x//../login", "login"}, {"/x/%2f../login", "login"},

	{"/users/1/search", "search"}, {"/users/1/search/", "search"}, {"/Users/1/Search", "search"},
	{"/users/1%2f2/search", "search"}, {"/users/%2e%2e/search", "search"}, {"/users/%2e/search", "search"},
	{"/users/../search", "search"}, {"/users/./search", "search"}, {"/users/1;2/search", "search"},
	{"/users/1;a/search;b", "search"}, {"/users/;/search", "search"}, {"/users/..;/search", "search"},
	{"/users//1/search", "search"}, {"/users/1//search", "search"}, {"/users/1/x/../search", "search"},
	{"/users/1/x//../../search", "search"}, {"/users%2f1%2fsearch", "search"},
	{"/users%5c1%5csearch", "search"}, {`/users\1\search`, "search"}, {"/users/1%2f..%2f2/search", "search"},
	{"/users/%2f/search", "search"}, {"/users/%20/search", "search"}, {"/users/caf%C3%A9/search", "search"},
	{"/a;x/../users/%2e%2e/search", "search"}, {"/a/../users/%2e%2e/search", "search"},
	{"/a//../../users/%2e%2e/search", "search"}, {"/users/%252e/search", "search"},

	{"/admin", "admin"}, {"/admin/", "admin"}, {"/admin/x", "admin"}, {"/ADMIN/x", "admin"}, {"/admin//", "admin"},
	{"/admin/%2e%2e/", "admin root"}, {"/admin/..", "admin root"}, {"/admin%2f..%2fx", "admin"},
	{"/x/../admin/y", "admin"}, {"/admin;x/y", "admin"}, {"/admin/../login", "admin login"},
	{"/admin/..;/login", "admin login"}, {"/admin%5c..%5clogin", "admin login"},
	{"/files/a/b", "files"}, {"/files/", "files"}, {"/files/%2e%2e/login", "files login"}, {"/FILES;v=1/a", "files"},
	{"/", "root"}, {"//", "root"}, {"/.", "root"}, {"/;x", "root"}, {"/%2f", "root"}, {"/x/..", "root"},

	{"/login.json", "login"}, {"/login.x.y", "login"}, {"/LOGIN.JSON/", "login"}, {"/%6cogin%2ejson", "login"},
	{"/login.html;x", "login"}, {"/users/1/search.csv", "search"}, {"/admin.json", "admin"},
	{"/login.", "login"}, {"/login..", "login"}, {"/login%20", "login"}, {"/login.%20./", "login"},
	{"/login%00", "login"}, {"/login%00.png", "login"}, {"/login::$DATA", "login"}, {"/x/../login./.", "login"},
	{"/admin./x", "admin"}, {"/admin%20/x", "admin"}, {"/users%09/1/search%0a", "search"},
	{"/%256cogin", "login"}, {"/%25%36cogin", "login"}, {"/x%252f..%252flogin", "login"}, {"/login%253bx", "login"},
	{"/%252e%252e/login", "login"}, {"/users/1%252f2/%2573earch", "search"}, {"/users/1%2f2/%2573earch", "search"},
	{"/login%255c", "login"}, {"/login%2500x", "login"},
	{"/login%00/x", "login"}, {"/login/%00/x/y", "login"}, {"/login%00/../x", "login"},
	{"/x/../login%2500%252fx", "login"},
	{"/login%3fx", "login"}, {"/login%3f/x", "login"}, {"/login%23", "login"}, {"/login/%23x/y", "login"},
	{"/LOGIN%253fx/y", "login"}, {"/users/1/search%3f/x", "search"}, {"/%3fx/y", "root"}, {"/run.php%00/x", "script"},
	{"//x/login", "login"}, {"///x/login/", "login"}, {"//x:80/%6cogin", "login"},
	{"//x/users/2/search", "search"}, {"//x/admin/..", "admin root"}, {"//x@y/run.php/z", "script"},
	{"/run.php", "script"}, {"/run.php/", "script"}, {"/run.php/x/y", "script"}, {"/RUN.php/a.css", "script"},
	{"/run.php%2fx", "script"}, {"/run.php;a/b", "script"}, {"/run.php./x", "script"}, {"/x/../run.php/y", "script"},

	{"/run.phpx", ""}, {"/run", ""}, {"/run.html/x", ""}, {"/x/run.php/", ""}, {"/users.json/1/search", ""},
	{"/login2.json", ""}, {"/%25256cogin", ""}, {"/loginjson", ""}, {"/login.json/x", ""}, {"/.login", ""},
	{"/login2", ""}, {"/logi", ""}, {"/loginx;y", ""}, {"/x/login", ""}, {"/login/x", ""},
	{"/users", ""}, {"/users/search", ""}, {"/users/1/2/search", ""}, {"/users/1/searches", ""},
	{"/users/1/search/x", ""}, {"/administrator", ""}, {"/filesystem/x", ""}, {"/.well-known/x", ""},
	{"/x%2flogin", ""}, {"/v1.2/a..b/c", ""},
	{"/users/a%3b/../search", ""},
}

// servers has eleven ways in which common servers read a path. They do not use the tested code. A slash within a
// segment is shown as a bar.
var servers = map[string]func(escaped string) string{
	"escaped, split and then undone": func(escaped string) string {
		segments := strings.Split(escaped, "/")
		for i, s := range segments {
			plain, _ := url.PathUnescape(s)
			segments[i] = strings.ReplaceAll(plain, "/", "|")
		}
		return strings.Join(segments, "/")
	},
	"decoded once, and no more": func(escaped string) string {
		plain, _ := url.PathUnescape(escaped)
		return plain
	},
	"decoded, dots and slashes resolved": func(escaped string) string {
		plain, _ := url.PathUnescape(escaped)
		return path.Clean("/" + plain)
	},
	"without parameters, backslashes as slashes, any case": func(escaped string) string {
		plain, _ := url.PathUnescape(regexp.MustCompile(`;[^/]*`).ReplaceAllString(escaped, ""))
		return strings.ToLower(path.Clean("/" + strings.ReplaceAll(plain, `\`, "/")))
	},
	"with a format behind a dot, as Rails": func(escaped string) string {
		plain, _ := url.PathUnescape(escaped)
		return regexp.MustCompile(`([^/.])\.[^/.]+/?$`).ReplaceAllString(path.Clean("/"+plain), "$1")
	},
	"a script and what is behind it, as PHP and CGI": func(escaped string) string {
		plain, _ := url.PathUnescape(escaped)
		return regexp.MustCompile(`(\.php)/.*$`).ReplaceAllString(path.Clean("/"+plain), "$1")
	},
	"without dots and blanks at the end, as Windows": func(escaped string) string {
		plain, _ := url.PathUnescape(escaped)
		return strings.ToLower(regexp.MustCompile(`[ .]+(/|$)`).ReplaceAllString(path.Clean("/"+plain), "$1"))
	},
	"up to a zero byte, as programs in C": func(escaped string) string {
		plain, _ := url.PathUnescape(escaped)
		plain, _, _ = strings.Cut(plain, "\x00")
		return path.Clean("/" + plain)
	},
	"decoded, and then read as a URL": func(escaped string) string {
		plain, _ := url.PathUnescape(escaped)
		if end := strings.IndexAny(plain, "?#"); end >= 0 {
			plain = plain[:end]
		}
		return path.Clean("/" + plain)
	},
	"a URL relative to the server's, as Node": func(escaped string) string {
		u, err := new(url.URL).Parse(regexp.MustCompile(`^/{2,}`).ReplaceAllString(escaped, "//"))
		if err != nil {
			return ""
		}
		return path.Clean("/" + u.Path)
	},
	"decoded twice, as behind a proxy that decodes": func(escaped string) string {
		plain, _ := url.PathUnescape(escaped)
		if again, err := url.PathUnescape(plain); err == nil {
			plain = again
		}
		return path.Clean("/" + plain)
	},
}

// If a server serves a path with a route, the path must meet the pattern of this route. A path of the table must meet
// exactly the patterns that the table names.
func TestNoReadingGoesAroundAPattern(t *testing.T) {
	assert.GreaterOrEqual(t, len(paths), 160)
	assert.Len(t, servers, 11)
	slipped := 0 // how often a limit with one reading would have been avoided
	for _, p := range paths {
		u, err := url.ParseRequestURI(p.raw)
		require.NoError(t, err, p.raw)
		r := &http.Request{Method: http.MethodGet, URL: u}
		for name, pattern := range patterns {
			parsed, err := ParsePath(pattern.text)
			require.NoError(t, err)
			m := Match{Paths: []Path{parsed}}
			wanted := strings.Contains(" "+p.want+" ", " "+name+" ")
			assert.Equal(t, wanted, m.Meets(r, nil), "%s with %s", p.raw, pattern.text)
			for server, read := range servers {
				if pattern.served.MatchString(read(u.EscapedPath())) {
					assert.True(t, m.Meets(r, nil), "%s with %s: %s", p.raw, pattern.text, server)
					if !m.Matches(r) {
						slipped++
					}
				}
			}
		}
	}
	assert.Greater(t, slipped, 140, "the table has what one reading does not see")
}

// net/http's mux serves some paths with a route and without a redirect. These paths must meet a pattern of the table.
func TestReadingsOfServeMux(t *testing.T) {
	mux := http.NewServeMux()
	for _, pattern := range []string{"/login", "/users/{id}/search", "/admin/", "/files/{rest...}", "/{$}"} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	}
	served := 0
	for _, p := range paths {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest("GET", p.raw, nil))
		if answer.Code == http.StatusTeapot {
			assert.NotEmpty(t, p.want, p.raw)
			served++
		}
	}
	assert.Greater(t, served, 20)
}

// With KeepCase, upper and lower case differ, in patterns and in keys.
func TestCaseOfPaths(t *testing.T) {
	m := &Match{Paths: patternsOf(t, "/Login"), KeepCase: true}
	for raw, want := range map[string]bool{"/Login": true, "/Login;x/": true, "/login": false, "/LOGIN": false} {
		assert.Equal(t, want, m.Meets(httptest.NewRequest("GET", raw, nil), nil), raw)
	}
	assert.Equal(t, "path /Login, upper and lower case as written", m.String())
	u := &url.URL{Path: "/A/b"}
	assert.Equal(t, "/A/b", KeyPath(u, true))
	assert.Equal(t, "/a/b", KeyPath(u, false))
}

// With KeepType, an extension of the last segment matters.
func TestExtensionsOfPaths(t *testing.T) {
	m := &Match{Paths: patternsOf(t, "/login"), KeepType: true}
	for raw, want := range map[string]bool{"/login": true, "/LOGIN;x/": true, "/login.": true, "/login.json": false} {
		assert.Equal(t, want, m.Meets(httptest.NewRequest("GET", raw, nil), nil), raw)
	}
	assert.Equal(t, "path /login, extensions as written", m.String())
}

// If a pattern stands for one path, all spellings of this path have one key.
func TestTheKeyOfARuleForOnePath(t *testing.T) {
	m := &Match{Paths: patternsOf(t, "/Login", "/{$}", "/users/{id}", "/run.php")}
	for raw, want := range map[string]string{
		"/login": "/Login", "/login.json": "/Login", "/x/%2f../login": "/Login", "/LOGIN%00x": "/Login", "/": "/", "//": "/",
		"/run.php/x": "/run.php", "/users/A": "/users/a", "/users/a.": "/users/a", "/users/a.b": "/users/a.b",
	} {
		u, err := url.ParseRequestURI(raw)
		require.NoError(t, err)
		assert.Equal(t, want, m.KeyPath(&http.Request{URL: u}), raw)
	}
	plain := &url.URL{Path: "/login"}
	assert.Zero(t, testalloc.PerCall(func() { m.KeyPath(&http.Request{URL: plain}) }))
}

// If a pattern ends in a name, all spellings that a server reads as this name have one key.
func TestTheKeyOfAPatternThatEndsInAName(t *testing.T) {
	m := &Match{Paths: patternsOf(t, "/users/{id}/search", "/{app}/run.php", "/files/{name}", "/static/")}
	exact := &Match{Paths: m.Paths, KeepType: true}
	for raw, want := range map[string]string{
		"/users/1/search": "/users/1/search", "/users/1/search/": "/users/1/search", "/users/1/SEARCH": "/users/1/search",
		"/users/1/search.json": "/users/1/search", "/users/1/search.b.c/": "/users/1/search",
		"/users/%31/search.x": "/users/1/search", "/users/1.x/search.y": "/users/1.x/search",
		"/users/2/search": "/users/2/search", "/a/run.php": "/a/run.php", "/a/run.php/x": "/a/run.php",
		"/a/run.php/y/z": "/a/run.php", "/a/run.php.bak": "/a/run.php",
		"/files/a.b": "/files/a.b", "/static/a.b": "/static/a.b", "/users/a%00/search": "ambiguous",
		"/other/x.y": "/other/x.y",
	} {
		u, err := url.ParseRequestURI(raw)
		require.NoError(t, err)
		assert.Equal(t, want, m.KeyPath(&http.Request{URL: u}), raw)
	}
	json := &url.URL{Path: "/users/1/search.json"}
	assert.Equal(t, "/users/1/search.json", exact.KeyPath(&http.Request{URL: json}), "it meets no pattern")
	assert.Zero(t, testalloc.PerCall(func() { m.KeyPath(&http.Request{URL: json}) }))
}

// Each spelling of a path has the path's key or the key of ambiguous paths. An extension makes another key, unless the
// rule's pattern stands for the path.
func TestKeyPath(t *testing.T) {
	parsed, err := ParsePath("/login")
	require.NoError(t, err)
	m := Match{Paths: []Path{parsed}}
	extension := regexp.MustCompile(`(?i)login\.[a-z]`)
	for _, p := range paths {
		if strings.HasPrefix(p.want, "login") {
			u, err := url.ParseRequestURI(p.raw)
			require.NoError(t, err)
			assert.Equal(t, "/login", m.KeyPath(&http.Request{URL: u}), p.raw)
			want := "/login"
			switch {
			case !hasOneEnd(u.Path): // the path ends early for some servers
				want = ambiguousKey
			case extension.MatchString(u.Path):
				want = "/" + path.Base(strings.ToLower(cleanPath(strings.TrimSuffix(u.Path, ";x"))))
			case strings.HasPrefix(p.raw, "//"), // the path is after a host
				p.raw == "/x//../login", p.raw == "/x/%2f../login", // some read /x/login: .. removes the empty segment
				strings.Contains(p.raw, "%25"):
				want = ambiguousKey
			}
			assert.Equal(t, want, KeyPath(u, false), p.raw)
		}
	}
	for text, want := range map[string]string{"": "/", "/": "/", "a": "/a", "/a/": "/a", "*": "/*", "/A/b": "/a/b",
		"/\u017fearch": "/search", "/\u212aey": "/key", "/\u00c9": "/\u00e9"} {
		assert.Equal(t, want, KeyPath(&url.URL{Path: text}, false), text)
	}
	plain := &url.URL{Path: "/users/1/search"}
	assert.Zero(t, testalloc.PerCall(func() { KeyPath(plain, false) }))
}

// After an escaped question mark, some servers read the text as a query. After an escaped number sign, some read it as
// a fragment. This text must not make a separate key.
func TestTheEndOfAPathMakesNoKey(t *testing.T) {
	for _, raw := range []string{"/login%3f1", "/login%3f2", "/login%3F", "/login%231", "/login%23", "/login%00", "/%3flogin",
		"/login%253f1", "/a/login%3f/b"} {
		u, err := url.ParseRequestURI(raw)
		require.NoError(t, err)
		assert.Equal(t, ambiguousKey, KeyPath(u, false), raw)
	}
}

// A path that is too long for the number of its readings is not read, so that no client can cause much work. It meets
// every pattern.
func TestALongPathMeetsEveryPattern(t *testing.T) {
	parsed, err := ParsePath("/login")
	require.NoError(t, err)
	m := Match{Paths: []Path{parsed}}
	long := strings.Repeat("/x", maxSplit)
	assert.False(t, m.Meets(httptest.NewRequest("GET", "/"+strings.Repeat("x", maxPath), nil), nil), "plain")
	assert.True(t, m.Meets(httptest.NewRequest("GET", "/x"+strings.Repeat("x", maxPath), nil), nil), "plain")
	assert.False(t, m.Meets(httptest.NewRequest("GET", long, nil), nil), "plain")
	assert.True(t, m.Meets(httptest.NewRequest("GET", long+"/x", nil), nil), "plain")
	assert.False(t, m.Meets(httptest.NewRequest("GET", "/;"+strings.Repeat("x", 100), nil), nil), "short")
	assert.True(t, m.Meets(httptest.NewRequest("GET", long+"/;", nil), nil))
	assert.False(t, m.Meets(httptest.NewRequest("GET", strings.Repeat("/%E4%BD%A0", 400), nil), nil), "one reading")
	for _, costly := range []string{"/%252f;%5c/../a%2541", "/a/%2f;%5c..%252f", "/.;", "//x/%2f;%5c.."} {
		assert.True(t, m.Meets(httptest.NewRequest("GET", strings.Repeat(costly, 400), nil), nil), costly)
		u, err := url.ParseRequestURI(strings.Repeat(costly, 2))
		require.NoError(t, err)
		all, made := readingsOf(u), 0
		require.False(t, all.tooLong())
		for _, ok := all.next(nil); ok; _, ok = all.next(nil) {
			made++
		}
		assert.LessOrEqual(t, made*len(u.EscapedPath()), 2*maxRead, costly)
	}
}

// A path has at most 240 readings. Readings have no empty segments, and no more segments than the path has characters.
func FuzzReadings(f *testing.F) {
	for _, p := range paths {
		f.Add(p.raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.ParseRequestURI(raw)
		if err != nil || len(raw) > 1000 {
			t.Skip("no request target, or one longer than is tried here")
		}
		all, made := readingsOf(u), 0
		for segments, ok := all.next(nil); ok; segments, ok = all.next(nil) {
			made++
			require.LessOrEqual(t, len(segments), len(raw)+1)
			assert.NotContains(t, segments, "")
		}
		assert.GreaterOrEqual(t, made, 1)
		assert.LessOrEqual(t, made, 240)
		key := KeyPath(u, false)
		assert.True(t, key == ambiguousKey || strings.HasPrefix(key, "/"))
	})
}

// If Ambiguity returns "", all servers in the table read a path in the same way. Some differences do not count, because
// rules cover them and ordinary paths have them: letter case, extensions, and text after scripts and question marks.
func TestAmbiguity(t *testing.T) {
	for _, p := range paths {
		u, err := url.ParseRequestURI(p.raw)
		require.NoError(t, err)
		seen := map[string]bool{}
		for name, read := range servers {
			if strings.Contains(name, "Rails") || strings.Contains(name, "PHP") || strings.Contains(name, "as a URL") {
				continue
			}
			seen[strings.ToLower(strings.TrimSuffix(read(u.EscapedPath()), "/"))] = true
		}
		if len(seen) > 1 {
			assert.NotEmpty(t, Ambiguity(u), "%s is read as %v", p.raw, seen)
		}
	}
	for raw, want := range map[string]string{
		"/": "", "/a/b/": "", "/caf%C3%A9": "", "/a%20b": "", "/%25": "", "/100%25": "", "/.well-known": "", "/a..b": "",
		"/a.":     `the end of the segment "a."`,
		"/a%20/b": `the end of the segment "a%20"`, "/a::$DATA": `the end of the segment "a::$DATA"`,
		"/%3Fa": "", "/A": "", "//": "an empty segment", "/a//b": "an empty segment", "/./a": `the segment "."`,
		"/%2e%2E/a": `the segment "%2e%2E"`, "/a;b": "a semicolon", "/a%3Bb": "a semicolon", "/a%2fb": "an escaped " +
			"slash",
		"/a%5Cb": "a backslash", "/%6cogin": "the escape %6c", "/a%20%41": "the escape %41", "/%256c": "the escape %25",
		"/caf%E9": "", "/%c0%AEx": "the escapes %c0%ae, which are not a character",
		"/%e0%80%af":    "the escapes %e0%80, which are not a character",
		"/%F0%80%80%AF": "the escapes %f0%80, which are not a character",
		"/%25%36c":      "the escape %36", "/a%00": "the escape %00", "/%7f": "the escape %7f", "/%7e": "the escape %7e",
	} {
		u, err := url.ParseRequestURI(raw)
		require.NoError(t, err)
		assert.Equal(t, want, Ambiguity(u), raw)
	}
}

// A target without a path meets every pattern, but matches no pattern for certain.
func TestAnOpaqueTargetIsAmbiguous(t *testing.T) {
	parsed, err := ParsePath("/login")
	require.NoError(t, err)
	m := Match{Paths: []Path{parsed}}
	for _, raw := range []string{"http:http://h/login", "x:other", "http:%2flogin"} {
		u, err := url.ParseRequestURI(raw)
		require.NoError(t, err)
		r := &http.Request{Method: http.MethodGet, URL: u}
		assert.NotEmpty(t, Ambiguity(u), raw)
		assert.True(t, m.Meets(r, nil), raw)
		assert.False(t, m.IsCertain(r, nil), raw)
	}
}

// TestAPathHasTwoKeysAtMost: a way of reading treats several spellings as one path. All these spellings have the path's
// key or the key of ambiguous paths. So no spelling gives a client a fresh bucket.
func TestAPathHasTwoKeysAtMost(t *testing.T) {
	keys := map[string]map[string]bool{} // keys by the way of reading and the path that is read
	add := func(raw string) {
		u, err := url.ParseRequestURI(raw)
		require.NoError(t, err)
		all := readingsOf(u)
		for !all.done {
			how := all.current
			segments, _ := all.next(nil)
			read := fmt.Sprint(how, strings.Join(segments, "\x00"))
			if keys[read] == nil {
				keys[read] = map[string]bool{}
			}
			if key := KeyPath(u, true); key != ambiguousKey {
				keys[read][key] = true
			}
		}
	}
	pieces := []string{"/", "//", ";", ";v", "%3b", "%5c", `\`, "%2f", "..", ".", "%2e%2e", "a", "b", "%61"}
	for _, p := range pieces {
		for _, q := range pieces {
			for _, r := range pieces {
				add("/x" + p + q + r + "/y")
			}
		}
	}
	for read, got := range keys {
		assert.LessOrEqual(t, len(got), 1, "%q: %v", read, got)
	}
	for _, raw := range []string{"/x/search;%5cV0", "/x/search;%2fV0", "/x/V%2fW/../search"} {
		u, err := url.ParseRequestURI(raw)
		require.NoError(t, err)
		assert.Equal(t, ambiguousKey, KeyPath(u, false), raw)
	}
}
