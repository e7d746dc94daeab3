package spelling

import "strings"

// Credentials returns a canonical text for the value of an Authorization header: "Bearer V". Spellings have the same
// text if they differ only in three things: the case of the scheme, the blanks after the scheme (RFC 9110, section
// 11.4), and the blanks after V ([TrimBlanks]). Credentials does not allocate for a value that is already canonical.
func Credentials(value string) string {
	value = TrimBlanks(value)
	end := strings.IndexAny(value, " \t")
	if end < 0 {
		return value
	}
	scheme, credentials := value[:end], TrimBlanks(value[end:])
	if isTitle(scheme) && value[end] == ' ' && len(scheme)+1+len(credentials) == len(value) {
		return value
	}
	return strings.ToUpper(scheme[:1]) + strings.ToLower(scheme[1:]) + " " + credentials
}

// isTitle reports whether the first letter of a word, and no other letter, is in upper case.
func isTitle(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x80 || i > 0 && 'A' <= c && c <= 'Z' || i == 0 && 'a' <= c && c <= 'z' {
			return false
		}
	}
	return true
}
