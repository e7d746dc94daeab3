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
	credentials := strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Proxy-Authorization")
	binary := strings.HasSuffix(name, "-bin")
	for i, line := range lines {
		switch {
		case credentials:
			line = Credentials(line)
		case !binary:
			line = strings.Trim(line, " \t")
		}
		if i > 0 && line != value {
			return "", false
		}
		value = line
	}
	return value, true
}
