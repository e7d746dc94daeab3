package spelling

import "strings"

// OneLine returns the value of a header, or of metadata, that was sent with these lines. Without a line, the value is
// "". If the lines differ, ok is false: some servers read the first line, some the last, and some all of them, so the
// header does not identify the client. OneLine removes blanks around a line ([TrimBlanks]). It does not do so if the
// name ends in -bin, because the values of such metadata are decoded bytes. For Authorization, OneLine returns the text
// of [Credentials]. OneLine allocates only where Credentials does.
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

// Line returns the value of one line of a header or of metadata, as [OneLine] does. Line removes blanks for two
// reasons. The first reason is that HTTP/1 removes ASCII blanks around a value before any program sees them (RFC 9110,
// section 5.5), and HTTP/2 does not. So weir may see a blank that the server behind it, which gets the request by
// HTTP/1, does not see. The second reason is that programs that trim a value also remove blanks of Unicode and of
// Latin-1.
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
