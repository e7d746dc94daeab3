package reading

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// Ambiguity says what in a path servers read in several ways; "" if there is nothing. Escapes that are needed, as of a
// letter that is not ASCII, are not ambiguous, and neither is the case of letters.
func Ambiguity(u *url.URL) string {
	if u.Opaque != "" {
		return "a target without a path"
	}
	escaped := u.EscapedPath()
	if isPlain(escaped) && u.Path == escaped {
		return ""
	}
	if strings.Contains(escaped, "//") {
		return "an empty segment"
	}
	for segment := range strings.SplitSeq(escaped, "/") {
		plain := spelling.Unescape(segment)
		switch {
		case plain == "." || plain == "..":
			return fmt.Sprintf("the segment %q", segment)
		case strings.Contains(plain, ";"):
			return "a semicolon"
		case strings.Contains(plain, "/"):
			return "an escaped slash"
		case strings.Contains(plain, `\`):
			return "a backslash"
		}
		if escape := needless(segment); escape != "" {
			return "the escape " + escape
		}
		if i := overlong(plain); i >= 0 {
			return fmt.Sprintf("the escapes %%%02x%%%02x, which are no character", plain[i], plain[i+1])
		}
		if trimSegment(plain) != plain {
			return fmt.Sprintf("the end of the segment %q", segment)
		}
	}
	return ""
}

// needless returns the first escape of what is not escaped by any program: letters, digits, -._~ (RFC 3986, 2.3) and
// control characters, and a percent sign that makes another escape.
func needless(segment string) string {
	for i := strings.IndexByte(segment, '%'); i >= 0 && i+3 <= len(segment); {
		escape := segment[i : i+3]
		c := spelling.Unescape(escape)[0]
		if isUnreserved(c) || c < ' ' || c == 0x7f || c == '%' && spelling.IsEscape("%"+segment[i+3:]) {
			return escape
		}
		next := strings.IndexByte(segment[i+3:], '%')
		if next < 0 {
			return ""
		}
		i += 3 + next
	}
	return ""
}

// overlong returns where a character begins that takes more bytes than it needs: %c0%ae is a dot to servers with a
// careless decoder of UTF-8; -1 if there is none.
func overlong(s string) int {
	for i := range len(s) - 1 {
		first := s[i]
		if first < 0xc0 { // most are, and the rest of the loop takes longer
			continue
		}
		if second := s[i+1]; second&0xc0 == 0x80 && (first <= 0xc1 || first == 0xe0 && second < 0xa0 ||
			first == 0xf0 && second < 0x90) {
			return i
		}
	}
	return -1
}

func isUnreserved(c byte) bool {
	return spelling.IsHex(c) || c >= 'g' && c <= 'z' || c >= 'G' && c <= 'Z' || strings.IndexByte("-._~", c) >= 0
}
