package spelling

// TrimBlanks removes blanks from both ends of a text. Blanks are the characters that Python's strip or JavaScript's
// trim removes, whether a server reads the header as UTF-8 or as Latin-1. They are white space of Unicode, the
// byte-order mark, and the single bytes 85 and A0. TrimBlanks also removes a byte 85 or A0 that is the last byte of a
// longer character. So two different texts may become equal, but texts that a server reads as equal never become
// different. TrimBlanks does not allocate.
func TrimBlanks(s string) string {
	start := 0
	for start < len(s) && !isVisible(s[start]) {
		size := blankAt(s[start:])
		if size == 0 {
			break
		}
		start += size
	}
	s = s[start:]
	end := len(s)
	for end > 0 && !isVisible(s[end-1]) {
		size := blankBefore(s[:end])
		if size == 0 {
			break
		}
		end -= size
	}
	return s[:end]
}

func isVisible(c byte) bool { return c > ' ' && c < 0x7f }

// blankAt returns the length in bytes of the blank at the start of a text, or 0. It compares bytes, because decoding
// characters takes three times as long.
func blankAt(s string) int {
	switch c := s[0]; {
	case isSingleBlank(c):
		return 1
	case c == 0xc2 && len(s) >= 2 && isLatinBlank(s[1]):
		return 2
	case c >= 0xe1 && len(s) >= 3 && isWideBlank(c, s[1], s[2]):
		return 3
	}
	return 0
}

// blankBefore returns the length in bytes of the blank at the end of a text, or 0.
func blankBefore(s string) int {
	n := len(s)
	switch c := s[n-1]; {
	case n >= 3 && isWideBlank(s[n-3], s[n-2], c):
		return 3
	case n >= 2 && s[n-2] == 0xc2 && isLatinBlank(c):
		return 2
	case isSingleBlank(c):
		return 1
	}
	return 0
}

// isSingleBlank reports whether a byte is a blank of ASCII or of Latin-1.
func isSingleBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || isLatinBlank(c) }

func isLatinBlank(c byte) bool { return c == 0x85 || c == 0xa0 }

// isWideBlank reports whether three bytes are white space of Unicode or the byte-order mark, in UTF-8.
func isWideBlank(a, b, c byte) bool {
	switch {
	case a == 0xe2 && b == 0x80: // U+2000 to U+200A, U+2028, U+2029, U+202F
		return c >= 0x80 && c <= 0x8a || c == 0xa8 || c == 0xa9 || c == 0xaf
	case a == 0xe2: // U+205F
		return b == 0x81 && c == 0x9f
	case a == 0xe3: // U+3000
		return b == 0x80 && c == 0x80
	case a == 0xe1: // U+1680
		return b == 0x9a && c == 0x80
	}
	return a == 0xef && b == 0xbb && c == 0xbf
}
