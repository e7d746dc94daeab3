package spelling

import "strings"

// OneLine returns the value of a header or of metadata that has these lines, "" for none. It is not ok if they differ:
// servers read the first, the last, or all of them, so no line says who the client is. Blanks around a line are no part
// of it (RFC 9110, section 5.5), unless the name ends in -bin, as that of decoded metadata does. The value of
// Authorization is that of [Credentials]. It does not allocate, beyond what that does.
func OneLine(name string, lines []string) (value string, ok bool) {
	if len(lines) == 0 {
		return "", true
	}
	for i, line := range lines {
		line = Line(name, line)
		if i > 0 && line != value {
			return "", false
		}
		value = line
	}
	return value, true
}

// Line returns the value of one line of a header or of metadata, as [OneLine] has it. HTTP/1 takes blanks off before
// anybody sees them, and HTTP/2 does not: what a rule sees with a blank, a server behind that is asked over HTTP/1 gets
// without.
func Line(name, line string) string {
	switch {
	case isCredentials(name):
		return Credentials(line)
	case strings.HasSuffix(name, "-bin"):
		return line
	}
	return trimSpace(line)
}

func isCredentials(name string) bool {
	return strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Proxy-Authorization")
}

// trimSpace takes the blanks off both ends that are no part of a value. For two characters [strings.Trim] first makes a
// set of them.
func trimSpace(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}
