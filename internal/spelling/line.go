package spelling

import "strings"

// OneLine returns the value of a header, or of metadata, that was sent with the given lines. Without a line, the value
// is "". If the lines differ, ok is false. The header then does not identify the client: some servers read the first
// line, some the last line, and some all lines. OneLine removes blanks around a line ([TrimBlanks]), unless the name
// ends in -bin, because the values of such metadata are decoded bytes. For Authorization, it returns the text of
// [Credentials]. It allocates only where Credentials does.
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

// Line returns the value of one line of a header or of metadata, as [OneLine] does. It removes blanks for two reasons.
// First, HTTP/1 removes ASCII blanks around a value before any program sees them (RFC 9110, section 5.5), but HTTP/2
// does not. So if weir gets a request by HTTP/2 and passes it on by HTTP/1, weir sees a blank that the server behind it
// does not see. Second, programs that trim a value also remove blanks of Unicode and of Latin-1.
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
