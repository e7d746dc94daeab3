package spelling

import (
	"strings"
	"unicode"
)

// TrimBlanks takes off both ends of a text what Python's strip or JavaScript's trim takes off, in a header that a
// server reads as UTF-8 or as Latin-1: white space of Unicode, the byte-order mark, and the single bytes 85 and A0. A
// character that ends in such a byte loses it: two texts may become one, but no text becomes two. It does not allocate.
func TrimBlanks(s string) string {
	if s == "" || isVisible(s[0]) && isVisible(s[len(s)-1]) {
		return s
	}
	for {
		trimmed := trimLatin(strings.TrimFunc(s, isBlank))
		if trimmed == s {
			return s
		}
		s = trimmed
	}
}

func isVisible(c byte) bool { return c > ' ' && c < 0x7f }

func isBlank(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }

// trimLatin takes off the blanks of Latin-1 that ASCII has not. The first byte of a character in UTF-8 is none of them.
func trimLatin(s string) string {
	for len(s) > 0 && isLatinBlank(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isLatinBlank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isLatinBlank(c byte) bool { return c == 0x85 || c == 0xa0 }
