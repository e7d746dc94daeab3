package spelling

import "unicode/utf8"

// TrimBlanks takes off both ends of a text what Python's strip or JavaScript's trim takes off, in a header that a
// server reads as UTF-8 or as Latin-1: white space of Unicode, the byte-order mark, and the single bytes 85 and A0. A
// character that ends in such a byte loses it: two texts may become one, but no text becomes two. It does not allocate.
func TrimBlanks(s string) string {
	for len(s) > 0 && !isVisible(s[0]) {
		if isLatinBlank(s[0]) || isBlank(rune(s[0])) { // the first byte of a longer character in UTF-8 is none of them
			s = s[1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		if !isBlank(r) {
			break
		}
		s = s[size:]
	}
	for len(s) > 0 && !isVisible(s[len(s)-1]) {
		r, size := utf8.DecodeLastRuneInString(s)
		if !isBlank(r) {
			if size = 1; !isLatinBlank(s[len(s)-1]) {
				break
			}
		}
		s = s[:len(s)-size]
	}
	return s
}

func isVisible(c byte) bool { return c > ' ' && c < 0x7f }

// isBlank reports whether a character is white space of Unicode or the byte-order mark.
func isBlank(r rune) bool {
	switch {
	case r < 0x80:
		return r == ' ' || r >= '\t' && r <= '\r'
	case r >= 0x2000 && r <= 0x200a, r == 0x3000, r == 0x85, r == 0xa0, r == 0x1680, r == 0x2028, r == 0x2029, r == 0x202f,
		r == 0x205f, r == '\ufeff':
		return true
	}
	return false
}

func isLatinBlank(c byte) bool { return c == 0x85 || c == 0xa0 }
