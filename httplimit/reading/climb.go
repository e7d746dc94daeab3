package reading

import (
	"net/url"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// Climbs reports whether some server may read the path as a path above its root: a ".." has no segment before it that
// it could remove. Behind a proxy that adds a base path, such a path leaves the base. If there are too many readings to
// try, Climbs returns true. It does not allocate for paths without "..".
func Climbs(u *url.URL) bool {
	once, twice := u.Path, spelling.Unescape(u.Path)
	hasOverlong := indexOverlong(once) >= 0 || indexOverlong(twice) >= 0
	if !hasOverlong && !strings.Contains(once, "..") && !strings.Contains(twice, "..") {
		return false
	}
	if climbs(u) {
		return true
	}
	if hasOverlong {
		once, twice = overlongs.Replace(once), overlongs.Replace(twice)
		return climbs(&url.URL{Path: once}) || climbs(&url.URL{Path: twice})
	}
	return spelling.HasEscapes(twice) && climbs(&url.URL{Path: twice}) // without escapes, climbs(u) has tried this path
}

// overlongs decodes overlong encodings of dots, slashes and other characters that matter, as careless decoders of UTF-8
// do.
var overlongs = strings.NewReplacer("\xc0\xae", ".", "\xe0\x80\xae", ".", "\xc0\xaf", "/", "\xe0\x80\xaf", "/", "\xc1\x9c", `\`,
	"\xe0\x81\x9c", `\`)

func climbs(u *url.URL) bool {
	rs := readingsOf(u)
	if rs.tooLong() {
		return true
	}
	rs.keepsDots = true // readings that resolve dots climb no higher than readings that keep dots
	var buffer [32]string
	for segments, ok := rs.next(buffer[:0]); ok; segments, ok = rs.next(buffer[:0]) {
		depth := 0
		for _, segment := range segments { // segments has no empty segments, as if slashes were merged
			switch {
			case segment == ".":
			case !isParent(segment):
				depth++
			case depth == 0:
				return true
			default:
				depth--
			}
		}
	}
	return false
}

// isParent reports whether a server may treat a segment as "..". Some servers ignore text after the dots (trimSegment).
func isParent(segment string) bool {
	rest, ok := strings.CutPrefix(segment, "..")
	return ok && (rest == "" || strings.Trim(rest, " \t\n\v\f\r") == "" || strings.ContainsAny(rest[:1], "\x00?#") ||
		strings.HasPrefix(rest, streamPrefix))
}
