package spelling

import "strings"

// Value returns the one text of all values of a cookie or parameter, without escapes, that some common server reads
// alike. It is a function of what each server reads, so a client has one bucket however it spells a value:
//
//   - V, and V with blanks or control characters around it ([TrimBlanks]), which Tornado takes off
//   - a plus sign, and a blank, which many servers read for it
//   - a control character, and a blank, which Tornado reads for it
//   - é in UTF-8, and é as the byte E9 of Latin-1, which is what Node reads of a byte without an escape
//
// Two values that no server takes for one may have one text, too: "a+b" and "a b". It is not ok if there is a zero
// byte, at which programs in C end a text and others do not. It does not allocate for a value of letters, digits and
// the like.
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

// fold writes what is a blank to some as a blank, and the characters up to U+00FF, which take two bytes in UTF-8, as
// the one byte that they are in Latin-1. It goes on until there is none, so that what was decoded and encoded again
// comes to the same bytes.
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
