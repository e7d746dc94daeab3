package spelling

import "strings"

// Value returns a canonical text for a value of a cookie or parameter without escapes. It is the same for all values
// that some common server reads alike, so a client has one bucket however it spells a value:
//
//   - V, and V with blanks or control characters around it ([TrimBlanks]), which Tornado removes
//   - a plus sign, and a blank, as which many servers read it
//   - a control character, and a blank, as which Tornado reads it
//   - é in UTF-8, and é as the byte E9 of Latin-1, as which Node reads that byte without an escape
//
// Two values that every server distinguishes may have one text, too: "a+b" and "a b". ok is false if there is a zero
// byte, at which C programs end a text and others do not. Value does not allocate for a value of letters, digits and
// similar characters.
func Value(s string) (text string, ok bool) {
	if strings.IndexByte(s, 0) >= 0 {
		return "", false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == '+' || c >= 0x7f {
			return TrimBlanks(fold(s)), true
		}
	}
	return s, true
}

// fold replaces what some servers read as a blank by a blank, and the characters up to U+00FF, which take two bytes in
// UTF-8, by their one byte in Latin-1. It repeats this until nothing changes, so that text that was encoded several
// times gives the same bytes.
func fold(s string) string {
	kept, n := make([]byte, len(s)), 0
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c == '+' || c == 0x7f {
			c = ' '
		}
		kept[n] = c
		n++
		if !isContinuation(c) {
			continue
		}
		for n >= 2 && isContinuation(kept[n-1]) && kept[n-2]|1 == 0xc3 {
			kept[n-2] = kept[n-1] | kept[n-2]<<6
			n--
		}
	}
	return string(kept[:n])
}

func isContinuation(c byte) bool { return c&0xc0 == 0x80 }
