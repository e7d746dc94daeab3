package spelling

import "strings"

// Value returns a canonical text for a value of a cookie or parameter. The escapes in the value must already be undone.
// If some common server treats two values as the same, the values have the same text. So a client has one bucket,
// however it spells a value. These values have the same text:
//
//   - V, and V with blanks ([TrimBlanks]) or control characters around it, because Tornado removes them
//   - a plus sign and a blank, because many servers read a plus sign as a blank
//   - a control character and a blank, because Tornado reads a control character as a blank
//   - é in UTF-8 and é as the byte E9 of Latin-1, because Node reads the byte E9 without an escape as é
//
// Two values that every server distinguishes may also have the same text, such as "a+b" sent as a%2Bb, and "a b" sent
// as a%20b. ok is false if the value has a zero byte, because C programs end a text at this byte and other programs do
// not. Value does not allocate for a value of letters, digits and similar characters.
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

// fold replaces each character that some servers read as a blank by a blank. It also replaces each character up to
// U+00FF that takes two bytes in UTF-8 by its one byte in Latin-1. It repeats this until nothing changes, so a text
// that was encoded as UTF-8 several times gives the same bytes.
func fold(s string) string {
	folded, n := make([]byte, len(s)), 0
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c == '+' || c == 0x7f {
			c = ' '
		}
		folded[n] = c
		n++
		if !isContinuation(c) {
			continue
		}
		for n >= 2 && isContinuation(folded[n-1]) && folded[n-2]|1 == 0xc3 {
			folded[n-2] = folded[n-1] | folded[n-2]<<6
			n--
		}
	}
	return string(folded[:n])
}

func isContinuation(c byte) bool { return c&0xc0 == 0x80 }
