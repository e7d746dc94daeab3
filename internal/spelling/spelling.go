package spelling

import (
	"strings"
	"unicode/utf8"
)

// SameName reports whether some server reads the name a of a cookie or parameter as the name b. ASP.NET ignores the
// case of letters. PHP reads a dot, a blank and an open bracket as an underscore. It ignores blanks before a name, and
// a zero byte with everything after it. Some servers undo escapes in names.
func SameName(a, b string) bool {
	if a == b {
		return true
	}
	if strings.ContainsAny(a, "%+") {
		a = UnescapeQuery(a)
	}
	a = strings.TrimLeft(UntilZero(a), " ")
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if foldName(a[i]) != foldName(b[i]) {
			return false
		}
	}
	return true
}

// AppendName appends a canonical form of a name. All names that [SameName] treats as equal have the same form. There is
// one difference: SameName decodes no escapes or plus signs in b. The canonical form of a long name is cut off.
func AppendName(dst []byte, name string) []byte {
	const maxBytes = 256
	start := len(dst)
	for i := 0; i < len(name) && len(dst)-start < maxBytes; i++ {
		c := name[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && IsEscape(name[i:]):
			c = hexValue(name[i+1])<<4 | hexValue(name[i+2])
			i += 2
		}
		if c == 0 {
			return dst
		}
		if c != ' ' || len(dst) > start {
			dst = append(dst, foldName(c))
		}
	}
	return dst
}

func foldName(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	case c == '.' || c == ' ' || c == '[':
		return '_'
	}
	return c
}

// Unescape undoes escapes: %41 becomes A. Other text is unchanged. It does not allocate if there is no escape.
func Unescape(s string) string {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s
	}
	plain := make([]byte, 0, len(s))
	for ; i >= 0; i = nextPercent(s) {
		plain = append(plain, s[:i]...)
		if s = s[i:]; IsEscape(s) {
			plain, s = append(plain, hexValue(s[1])<<4|hexValue(s[2])), s[3:]
		} else {
			plain, s = append(plain, '%'), s[1:]
		}
	}
	return string(append(plain, s...))
}

// nextPercent returns the index of the first percent sign, as strings.IndexByte does. If percent signs are frequent,
// nextPercent is faster.
func nextPercent(s string) int {
	const near = 8
	for i := range min(near, len(s)) {
		if s[i] == '%' {
			return i
		}
	}
	if i := strings.IndexByte(s[min(near, len(s)):], '%'); i >= 0 {
		return near + i
	}
	return -1
}

// UnescapeUnits undoes escapes of the form %u0041, as ASP and ASP.NET Framework do in a query. No standard has these
// escapes. Other text is unchanged. UnescapeUnits does not allocate if there is no such escape.
func UnescapeUnits(s string) string {
	first := 0
	for !isUnit(s[first:]) {
		next := strings.Index(s[min(first+1, len(s)):], "%u")
		if next < 0 {
			return s
		}
		first += 1 + next
	}
	plain := make([]byte, 0, len(s))
	for i := first; i >= 0; i = strings.Index(s, "%u") {
		plain = append(plain, s[:i]...)
		if s = s[i:]; !isUnit(s) {
			plain, s = append(plain, '%'), s[1:]
			continue
		}
		high, low := hexValue(s[2])<<4|hexValue(s[3]), hexValue(s[4])<<4|hexValue(s[5])
		plain = utf8.AppendRune(plain, rune(high)<<8|rune(low)) // a half of a surrogate pair becomes U+FFFD
		s = s[6:]
	}
	return string(append(plain, s...))
}

// isUnit reports whether a text begins with an escape such as %u0041.
func isUnit(s string) bool {
	return len(s) >= 6 && s[0] == '%' && s[1] == 'u' && IsHex(s[2]) && IsHex(s[3]) && IsHex(s[4]) && IsHex(s[5])
}

// UnescapeQuery replaces plus signs by blanks, because a plus sign in a query is a blank. Then it undoes escapes as
// Unescape does.
func UnescapeQuery(s string) string { return Unescape(blanksForPlus(s)) }

// blanksForPlus replaces plus signs by blanks. strings.ReplaceAll is slow for a text with many plus signs.
func blanksForPlus(s string) string {
	if strings.IndexByte(s, '+') < 0 {
		return s
	}
	text := []byte(s)
	for i, c := range text {
		if c == '+' {
			text[i] = ' '
		}
	}
	return string(text)
}

// UntilZero returns the text before the first zero byte. C programs end a text at this byte.
func UntilZero(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

// HasEscapes reports whether there is an escape in a text.
func HasEscapes(s string) bool {
	for i := range len(s) {
		if IsEscape(s[i:]) {
			return true
		}
	}
	return false
}

// IsEscape reports whether a text begins with an escape, such as %2f.
func IsEscape(s string) bool { return len(s) >= 3 && s[0] == '%' && IsHex(s[1]) && IsHex(s[2]) }

// IsHex reports whether a character is a hexadecimal digit.
func IsHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^('a'-'A') - 'A' + 10
}
