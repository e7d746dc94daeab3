package spelling

import "strings"

// OneLine returns the value of a header, or of metadata, with these lines, and "" for none. ok is false if the lines
// differ: servers read the first, the last, or all of them, so the header does not identify the client. Blanks around a
// line ([TrimBlanks]) are removed, unless the name ends in -bin, as the name of decoded metadata does. For
// Authorization, the value is that of [Credentials]. OneLine allocates only where Credentials does.
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

// Line returns the value of one line of a header or of metadata, as [OneLine] does. HTTP/1 removes ASCII blanks before
// any program sees them (RFC 9110, section 5.5), and HTTP/2 does not. So a rule may see a blank that a server behind
// weir, which gets the request by HTTP/1, does not see. Blanks of Unicode and of Latin-1 are removed by programs that
// trim a value.
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
