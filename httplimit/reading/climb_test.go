package reading

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClimbs(t *testing.T) {
	for target, want := range map[string]bool{
		"/": false, "/a/b": false, "/a/../b": false, "/a/b/../../c": false, "/a..b/..c/d..": false, "/...": false, "/a/...": false,
		"/.": false, "/a/./..": false, "/%2e/a": false, "/..a": false, "/a%2fb": false, "/%41/..": false,
		"/..":                               true,
		"/../app/login":                     true,
		"/x/../../app/login":                true,
		"/%2e%2e/app/login":                 true,
		"/.%2E/app":                         true,
		"/..%2fapp/login":                   true,
		"/a%2f..%2f..":                      true,
		"/a%2fb/../..":                      true, // for servers where an escaped slash is part of a name
		"/a/b%2f..%2f..%2f..":               true,
		"/%252e%252e/app":                   true,
		"/a/%252e%252e/..":                  true,
		`/..\app`:                           true,
		"/..%5capp":                         true,
		"/..;x=1/app":                       true,
		"/a;/..;/..;x":                      true,
		"/..%3bx/app":                       true,
		"//../app":                          true, // for servers that remove empty segments
		"/a//../..":                         true,
		"//host/../app":                     true, // for servers that treat the name as a host
		"/..%00/app":                        true,
		"/..%20/app":                        true,
		"/%c0%ae%c0%ae/app":                 true,
		"/%c0%ae./app":                      true,
		"/a%c0%af..%c0%af..":                true,
		"/%e0%80%ae%e0%80%ae/app":           true,
		"/%25c0%25ae%25c0%25ae/app":         true,
		"/..%3fx":                           true,
		"/" + strings.Repeat("a/;..", 5000): true, // too many readings
	} {
		u, err := url.ParseRequestURI(target)
		require.NoError(t, err, target)
		assert.Equal(t, want, Climbs(u), target)
	}
	u, err := url.ParseRequestURI("/a/b%20c/d.json")
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() { Climbs(u) }))
}

// FuzzClimbs: if Climbs returns false, the path stays below a base path. It stays there however often escapes are
// undone, and whichever characters count as a slash.
func FuzzClimbs(f *testing.F) {
	f.Add("/a/../b")
	f.Add("/a%2f..%2f%2e%2e/;/..%5c")
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Path == "" || u.Path[0] != '/' || Climbs(u) {
			return
		}
		read := u.EscapedPath()
		for range 3 {
			for _, one := range []string{read, strings.ReplaceAll(read, `\`, "/"), mergeSlashes(read)} {
				joined := path.Join("/base", one)
				if joined != "/base" && !strings.HasPrefix(joined, "/base/") {
					t.Fatalf("%q is read as %q and leaves /base: %q", target, one, joined)
				}
			}
			if read, err = url.PathUnescape(read); err != nil {
				return
			}
		}
	})
}

func mergeSlashes(s string) string {
	for strings.Contains(s, "//") {
		s = strings.ReplaceAll(s, "//", "/")
	}
	return s
}
