package spelling

import "strings"

// Credentials returns the one text of all the ways to write the value of an Authorization header that differ in the
// case of the scheme and in the blanks behind it (RFC 9110, section 11.4) and behind V ([TrimBlanks]): "Bearer V". It
// does not allocate for a value that is written so.
func Credentials(value string) string {
	value = TrimBlanks(value)
	end := strings.IndexAny(value, " \t")
	if end < 0 {
		return value
	}
	scheme, rest := value[:end], TrimBlanks(value[end:])
	if isTitle(scheme) && value[end] == ' ' && len(scheme)+1+len(rest) == len(value) {
		return value
	}
	return strings.ToUpper(scheme[:1]) + strings.ToLower(scheme[1:]) + " " + rest
}

// isTitle reports whether a word has its first letter, and no other, in upper case.
func isTitle(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x80 || i > 0 && 'A' <= c && c <= 'Z' || i == 0 && 'a' <= c && c <= 'z' {
			return false
		}
	}
	return true
}
