package accesslog

import "bytes"

// cutSyslog removes the header that a syslog daemon puts before a line, if any:
//
//	<190>Nov 21 22:07:05 host nginx[42]: ...         RFC 3164, section 4.1, as sent
//	<190>Nov 21 22:07:05 haproxy[42]: ...            the same from a program that leaves out its host
//	Nov 21 22:07:05 host nginx: ...                  the same, as traditionally written to files
//	2026-11-21T22:07:05.123+00:00 host nginx: ...    the same with a full date, as rsyslog writes by default
//	<190>1 2026-11-21T22:07:05Z host nginx 42 - - ...   RFC 5424, section 6
//
// No format has lines that begin like such a header. An incomplete header is not removed, so the parser of the format
// refuses the line.
func cutSyslog(line []byte) []byte {
	rest := line
	if rest[0] == '<' {
		end := bytes.IndexByte(rest, '>')
		if end < 2 || end > 4 || !isNumber(rest[1:end]) {
			return line
		}
		rest = rest[end+1:]
		if message, ok := cutRFC5424(rest); ok {
			return message
		}
	}
	rest, ok := cutSyslogDate(rest)
	if !ok {
		return line
	}
	for range 2 { // the tag comes after the host; a program that writes its own header leaves the host out
		var word []byte
		if word, rest, ok = bytes.Cut(rest, space); !ok {
			return line
		}
		if len(word) > 1 && word[len(word)-1] == ':' {
			return rest
		}
	}
	return line
}

// cutSyslogDate cuts off a date and the space after it. The form is ISO 8601, or RFC 3164 without year and zone.
func cutSyslogDate(line []byte) (rest []byte, ok bool) {
	const form = "Jan _2 15:04:05 "
	if len(line) < len(form) {
		return nil, false
	}
	if isNumber(line[:1]) {
		date, rest, ok := bytes.Cut(line, space)
		if !ok || len(date) < len("2006-01-02T15:04:05Z") || date[4] != '-' {
			return nil, false
		}
		_, err := parseISO(date)
		return rest, err == nil
	}
	s := newStamp(line)
	s.monthName()
	s.char(' ')
	if len(s.rest) > 0 && s.rest[0] == ' ' {
		s.char(' ')
		s.number(1)
	} else {
		s.number(2)
	}
	s.char(' ')
	s.clock()
	s.char(' ')
	return s.rest, s.ok
}

// cutRFC5424 cuts off the header that follows the priority: VERSION TIMESTAMP HOSTNAME APP-NAME PROCID MSGID
// STRUCTURED-DATA.
func cutRFC5424(line []byte) (message []byte, ok bool) {
	if !bytes.HasPrefix(line, []byte("1 ")) {
		return nil, false
	}
	const header = 6 // fields before the structured data
	for range header {
		if _, line, ok = bytes.Cut(line, space); !ok {
			return nil, false
		}
	}
	if line, ok = cutStructuredData(line); !ok || len(line) == 0 || line[0] != ' ' {
		return nil, false
	}
	return trimBOM(line[1:]), true
}

// cutStructuredData cuts off "-", or elements such as [id name="value"]. In a value, a backslash escapes ", \\ and ].
func cutStructuredData(line []byte) (rest []byte, ok bool) {
	if len(line) > 0 && line[0] == '-' {
		return line[1:], true
	}
	for len(line) > 0 && line[0] == '[' {
		end := 1
		for end < len(line) && line[end] != ']' {
			if line[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(line) {
			return nil, false
		}
		line, ok = line[end+1:], true
	}
	return line, ok
}

func trimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }
