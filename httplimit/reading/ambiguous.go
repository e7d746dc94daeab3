package reading

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// Ambiguity returns the first part of a path that servers read in different ways, or "". Letter case does not count as
// ambiguous. Neither do necessary escapes, such as those of non-ASCII letters.
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
		if escape := needlessEscape(segment); escape != "" {
			return "the escape " + escape
		}
		if i := indexOverlong(plain); i >= 0 {
			return fmt.Sprintf("the escapes %%%02x%%%02x, which are not a character", plain[i], plain[i+1])
		}
		if trimSegment(plain) != plain {
			return fmt.Sprintf("the end of the segment %q", segment)
		}
	}
	return ""
}

// needlessEscape returns the first escape in a segment that an ordinary program would not send. Such an escape is of a
// letter, a digit, one of -._~ (RFC 3986, 2.3), or a control character. It may also be of a percent sign, if another
// escape then begins with it.
func needlessEscape(segment string) string {
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

// indexOverlong returns the index of the first character with an overlong encoding in UTF-8, or -1. Careless decoders
// accept such an encoding. For example, they read %c0%ae as a dot.
func indexOverlong(s string) int {
	for i := range len(s) - 1 {
		first := s[i]
		if first < 0xc0 { // true for most characters; the rest of the loop takes longer
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
