package spelling

import "strings"

// OneLine returns the value of a header or of metadata that has these lines, "" for none. It is not ok if they differ:
// servers read the first, the last, or all of them, so no line says who the client is. Blanks around a line
// ([TrimBlanks]) are no part of it, unless the name ends in -bin, as that of decoded metadata does. The value of
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

// Line returns the value of one line of a header or of metadata, as [OneLine] has it. HTTP/1 takes blanks of ASCII off
// before anybody sees them (RFC 9110, section 5.5), and HTTP/2 does not: what a rule sees with a blank, a server behind
// that is asked over HTTP/1 gets without. Those of Unicode and of Latin-1 are taken off by programs that trim a value.
func Line(name, line string) string {
	switch {
	case isCredentials(name):
		return Credentials(line)
	case strings.HasSuffix(name, "-bin"):
		return line
	}
	return TrimBlanks(line)
}

func isCredentials(name string) bool {
	return strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Proxy-Authorization")
}
