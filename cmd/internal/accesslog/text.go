package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
)

// cutField cuts the first field off a line. One space separates fields, except inside "quotes". The field is returned
// without its quotes, but with its escapes.
func cutField(line []byte) (field, rest []byte, err error) {
	if len(line) == 0 {
		return nil, nil, errors.New("the line ends too early")
	}
	if line[0] != '"' {
		field, rest, _ = bytes.Cut(line, space)
		return field, rest, nil
	}
	field, rest, closed := cutQuoted(line)
	if !closed {
		return nil, nil, fmt.Errorf("%s has no closing quote", quote(field))
	}
	if len(rest) > 0 && rest[0] != ' ' {
		return nil, nil, fmt.Errorf("want a space after the field %s", quote(field))
	}
	return field, bytes.TrimPrefix(rest, space), nil
}

// cutFields cuts fields off until all targets are filled. A nil target skips a field.
func cutFields(line []byte, targets ...*[]byte) (rest []byte, err error) {
	for _, target := range targets {
		var field []byte
		if field, line, err = cutField(line); err != nil {
			return nil, err
		}
		if target != nil {
			*target = field
		}
	}
	return line, nil
}

// cutQuoted returns the text between the opening quote of s and the next quote without a backslash, and the rest.
// Without such a quote, text is the rest of s, and closed is false.
func cutQuoted(s []byte) (text, rest []byte, closed bool) {
	s = s[1:]
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[:i], s[i+1:], true
		}
	}
	return s, nil, false
}

var space = []byte(" ")

// isAbsent reports whether a field means that the server had nothing to log.
func isAbsent(field []byte) bool { return len(field) == 0 || len(field) == 1 && field[0] == '-' }

// unescape undoes the escapes of Apache httpd and nginx: \" \\ \n \xHH and the like. Other backslashes stay. Without
// escapes, it returns text itself.
//
// https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#formats (format notes)
// https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format (escape=default)
func (p *parser) unescape(text []byte) []byte {
	first := bytes.IndexByte(text, '\\')
	if first < 0 {
		return text
	}
	start := len(p.scratch)
	p.scratch = append(p.scratch, text[:first]...)
	for i := first; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			p.scratch = append(p.scratch, text[i])
			continue
		}
		if unescaped, ok := simpleEscape(text[i+1]); ok {
			p.scratch = append(p.scratch, unescaped)
			i++
		} else if b, ok := hexByte(text[i+1:], 'x'); ok {
			p.scratch = append(p.scratch, b)
			i += 3
		} else {
			p.scratch = append(p.scratch, '\\')
		}
	}
	return p.scratch[start:]
}

func simpleEscape(c byte) (unescaped byte, ok bool) {
	switch c {
	case '"', '\\':
		return c, true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'v':
		return '\v', true
	}
	return 0, false
}

func hexByte(text []byte, mark byte) (b byte, ok bool) {
	if len(text) < 3 || text[0] != mark {
		return 0, false
	}
	for _, c := range text[1:3] {
		switch {
		case c >= '0' && c <= '9':
			b = b<<4 | (c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			b = b<<4 | (c | 0x20 - 'a' + 10)
		default:
			return 0, false
		}
	}
	return b, true
}

// setRequest splits a request line: METHOD target HTTP/version. If the line has another form, the request was not HTTP,
// and the fields stay empty.
func (e *Entry) setRequest(line []byte) {
	method, rest, ok := bytes.Cut(line, space)
	end := bytes.LastIndexByte(rest, ' ') // found at once, if no space follows the target
	if end < 0 || !bytes.HasPrefix(rest[end+1:], []byte("HTTP/")) {
		end = bytes.LastIndex(rest, []byte(" HTTP/"))
	}
	if !ok || end <= 0 || len(method) == 0 {
		return
	}
	e.Method, e.Target, e.Proto = method, rest[:end], rest[end+1:]
}

// setClient sets the client to an address, with or without its port, or to a name. It accepts only printable ASCII, so
// that binary data is refused.
func (e *Entry) setClient(field []byte) error {
	if len(field) == 0 {
		return errors.New("no client")
	}
	if isAbsent(field) {
		return fmt.Errorf("no client, but %s", quote(field))
	}
	for i, c := range field {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("the client %s has byte 0x%02x at position %d: want printable ASCII",
				quote(field), c, i+1)
		}
	}
	e.Client = withoutPort(field)
	return nil
}

// withoutPort cuts the port off an address. An IPv6 address only has a port if it is in brackets.
func withoutPort(field []byte) []byte {
	if field[0] == '[' {
		if end := bytes.IndexByte(field, ']'); end > 1 {
			return field[1:end]
		}
		return field
	}
	host, port, ok := bytes.Cut(field, []byte(":"))
	if !ok || len(host) == 0 || !isNumber(port) {
		return field
	}
	return host
}

func (e *Entry) setOutcome(status, size []byte) (err error) {
	if e.Status, err = parseStatus(status); err == nil {
		e.Size, err = parseSize(size)
	}
	return err
}

// parseStatus parses a status of three digits. For a request without an answer, servers write "-", 0 or -1. It then
// returns 0.
func parseStatus(text []byte) (int, error) {
	switch string(text) {
	case "-", "0", "-1":
		return 0, nil
	}
	if len(text) != 3 || !isNumber(text) {
		return 0, fmt.Errorf("the status %s is neither three digits nor -", quote(text))
	}
	return int(digits(text)), nil
}

func parseSize(text []byte) (int64, error) {
	if len(text) == 1 && text[0] == '-' {
		return 0, nil
	}
	const longest = 18 // digits that cannot overflow
	if len(text) <= longest && isNumber(text) {
		return digits(text), nil
	}
	size, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("the size %s is neither a number of bytes below 2^63 nor -", quote(text))
	}
	return int64(size), nil
}

func isNumber(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}

func isAddress(text []byte) bool {
	if len(text) == 0 || bytes.IndexByte(text, '.') < 0 && bytes.IndexByte(text, ':') < 0 {
		return false // the usual case, without making a string
	}
	_, err := netip.ParseAddr(string(withoutPort(text)))
	return err == nil
}

// quote formats a bad field for an error message: escaped, and cut to one readable line.
func quote(field []byte) string {
	const longest = 48
	if len(field) > longest {
		return strconv.Quote(string(field[:longest])) + "..."
	}
	return strconv.Quote(string(field))
}
