package spelling

import "strings"

// Credentials returns a canonical text for the value of an Authorization header: "Bearer V". The text is the same for
// all spellings that differ only in the case of the scheme, in the blanks after it (RFC 9110, section 11.4), or in the
// blanks after V ([TrimBlanks]). Credentials does not allocate for a value that is already written in this way.
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

// isTitle reports whether the first letter of a word, and no other letter, is in upper case.
func isTitle(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x80 || i > 0 && 'A' <= c && c <= 'Z' || i == 0 && 'a' <= c && c <= 'z' {
			return false
		}
	}
	return true
}
