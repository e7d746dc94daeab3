package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// parseWeir parses a line of weir serve's access log as text:
//
//	time=2026-11-20T09:00:00.012Z level=INFO msg=request client=192.0.2.1 method=GET host=example.com path=/login
//	proto=HTTP/1.1 status=200 bytes=512 seconds=0.012 by=upstream
//
// Values in quotes have Go's escapes. The log leaves out the query.
func (p *parser) parseWeir(line []byte) error {
	if !bytes.HasPrefix(line, []byte("time=")) {
		return errors.New(`no "time=" at its start, as a line of weir has`)
	}
	p.members = p.members[:0]
	for len(line) > 0 {
		name, rest, ok := bytes.Cut(line, []byte("="))
		if !ok {
			return fmt.Errorf("want name=value, got %s", quote(line))
		}
		value, rest, err := p.cutValue(rest)
		if err != nil {
			return err
		}
		p.members, line = append(p.members, member{topObject, name, value}), rest
	}
	return p.setWeir()
}

// cutValue cuts off a value and the space after it. The value is returned without its quotes and escapes.
func (p *parser) cutValue(line []byte) (value, rest []byte, err error) {
	if len(line) == 0 || line[0] != '"' {
		value, rest, _ = bytes.Cut(line, space)
		return value, rest, nil
	}
	value, rest, closed := cutQuoted(line)
	if !closed || len(rest) > 0 && rest[0] != ' ' {
		return nil, nil, fmt.Errorf("the value %s does not end with its quote", quote(value))
	}
	rest = bytes.TrimPrefix(rest, space)
	if onlyQuotes(value) {
		return p.unescape(value), rest, nil
	}
	text, err := strconv.Unquote(string(line[:len(value)+2]))
	if err != nil {
		return nil, nil, fmt.Errorf("the value %s is not in quotes of Go: %w", quote(value), err)
	}
	return []byte(text), rest, nil
}

// onlyQuotes reports whether only quotes and backslashes are escaped, so that the value needs no allocation.
func onlyQuotes(value []byte) bool {
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' {
			if i++; value[i] != '"' && value[i] != '\\' { // another byte follows: the closing quote is not escaped
				return false
			}
		}
	}
	return true
}

func (p *parser) parseWeirJSON(line []byte) error {
	if err := p.parseJSON(line); err != nil {
		return err
	}
	return p.setWeir()
}

// setWeir fills the entry. Its time is the time of the line minus the duration of the request.
func (p *parser) setWeir() error {
	var raw rawFields
	var kind, seconds, answeredBy []byte
	for _, m := range p.members {
		if m.parent != topObject {
			continue
		}
		switch string(m.name) {
		case "time":
			raw.time = m.value
		case "msg":
			kind = m.value
		case "client":
			raw.client = m.value
		case "method":
			raw.method = m.value
		case "host":
			p.setHost(m.value)
		case "path":
			raw.target = m.value
		case "proto":
			raw.proto = m.value
		case "status":
			raw.status = m.value
		case "bytes":
			raw.size = m.value
		case "seconds":
			seconds = m.value
		case "by":
			answeredBy = m.value
		}
	}
	if string(kind) != "request" || len(answeredBy) == 0 {
		return errors.New(`no "msg" that is "request" with a "by", as a line of weir's access log has`)
	}
	if err := p.setRaw(&raw); err != nil {
		return err
	}
	duration, err := strconv.ParseFloat(string(seconds), 64)
	const longest = 1e6 // more than eleven days, in seconds
	if err != nil || !(duration >= 0 && duration <= longest) {
		return fmt.Errorf("the seconds %s are not a number from 0 to %d", quote(seconds), int(longest))
	}
	p.entry.Time, err = inRange(p.entry.Time.Add(-time.Duration(duration*float64(time.Second))), raw.time)
	return err
}
