package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The parser is ours because no maintained library was found that gives the
// reason why a line is bad.

// Entry is one request as the server logged it. Its byte slices are parts of
// the line it was parsed from and are valid as long as that line is; escapes
// such as \" are left as they were logged.
type Entry struct {
	Host    []byte    // client address, or its name where the server looks names up
	Ident   []byte    // RFC 1413 identity, almost always "-"
	User    []byte    // authenticated user, "-" when there is none; may contain spaces
	Time    time.Time // when the request was received, to the second
	Request []byte    // request line, such as GET /path HTTP/1.1
	Status  int       // HTTP status; 0 where the log has "-"
	Size    int64     // bytes of the response body; 0 where the log has "-"
	Referer []byte    // Combined only
	Agent   []byte    // Combined only
}

// dateLayout is the form of the date between the brackets.
const dateLayout = "02/Jan/2006:15:04:05 -0700"

// Dates outside these years are refused: time.Time.UnixNano, on which a replay
// keeps its clock, is defined only up to the year 2262, and a log cannot be
// older than the format.
const (
	firstYear = 1970
	lastYear  = 2261
)

// What separates the fields up to the opening quote of the request.
var (
	space     = []byte(" ")
	dateStart = []byte(" [")
	dateEnd   = []byte(`] "`)
)

// ParseLine parses one line, without its line end, of the Common Log Format
//
//	host ident user [date] "request" status size
//
// or of the Combined one, which appends "referer" "user-agent". Whatever a
// server appends after these is ignored, and the line may end anywhere after
// the size: loggers cut long lines there, and what is lost is neither the client
// nor the request nor its time.
//
// The error names the first field that is wrong and quotes it, cut to a
// readable length. On a good line the only allocations are those of time.Parse.
func ParseLine(line []byte) (Entry, error) {
	var e Entry
	if len(bytes.TrimSpace(line)) == 0 {
		return Entry{}, errors.New("the line is empty")
	}
	date, err := e.parseClient(line)
	if err != nil {
		return Entry{}, err
	}
	if e.Time, err = parseDate(date.text); err != nil {
		return Entry{}, err
	}
	rest, err := e.parseOutcome(date.rest)
	if err != nil {
		return Entry{}, err
	}
	if err := e.parseExtras(rest); err != nil {
		return Entry{}, err
	}
	return e, nil
}

// dateField is the text between the brackets and what follows, from the
// opening quote of the request on.
type dateField struct{ text, rest []byte }

// parseClient takes host, ident and user, and finds the date. The end of the
// date is looked for first, as `] "`: a user name may contain spaces and
// brackets, even a whole forged date, but no bare quote, which servers escape.
func (e *Entry) parseClient(line []byte) (dateField, error) {
	host, rest, ok := bytes.Cut(line, space)
	if !ok {
		return dateField{}, fmt.Errorf("no field after %s", quote(line))
	}
	if err := checkHost(host); err != nil {
		return dateField{}, err
	}
	end := bytes.Index(rest, dateEnd)
	if end < 0 {
		return dateField{}, errors.New(`no date in brackets followed by a request in quotes`)
	}
	start := bytes.LastIndex(rest[:end], dateStart)
	if start < 0 {
		return dateField{}, errors.New("the date has no opening bracket")
	}
	ident, user, ok := bytes.Cut(rest[:start], space)
	if !ok || len(ident) == 0 || len(user) == 0 {
		return dateField{}, fmt.Errorf("want the fields ident and user before the date, got %s", quote(rest[:start]))
	}
	e.Host, e.Ident, e.User = host, ident, user
	return dateField{text: rest[start+len(dateStart) : end], rest: rest[end+len(dateEnd)-1:]}, nil
}

// checkHost accepts printable ASCII only. Names and addresses are nothing else;
// a byte-order mark, UTF-16 or binary data is told apart here, and a host can
// be shown on a terminal as it is.
func checkHost(host []byte) error {
	if len(host) == 0 {
		return errors.New("no client host before the first space")
	}
	for i, c := range host {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("the client host %s has byte 0x%02x at position %d: want printable ASCII", quote(host),
				c, i+1)
		}
	}
	return nil
}

func parseDate(text []byte) (time.Time, error) {
	// time.Parse alone would also take fractional seconds.
	if len(text) != len(dateLayout) {
		return time.Time{}, fmt.Errorf("the date %s is not of the form %s", quote(text), dateLayout)
	}
	t, err := time.Parse(dateLayout, string(text))
	if bad := (*time.ParseError)(nil); errors.As(err, &bad) && bad.Message != "" {
		return time.Time{}, fmt.Errorf("the date %s is impossible%s", quote(text), bad.Message)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("the date %s is not of the form %s", quote(text), dateLayout)
	}
	if y := t.UTC().Year(); y < firstYear || y > lastYear {
		return time.Time{}, fmt.Errorf("the date %s is outside the years %d to %d", quote(text), firstYear, lastYear)
	}
	return t, nil
}

// parseOutcome takes the request, the status and the size, and returns what is
// left: nothing, or a space and the fields of the Combined format.
func (e *Entry) parseOutcome(rest []byte) ([]byte, error) {
	request, rest, closed := cutQuoted(rest)
	if !closed {
		return nil, fmt.Errorf("the request %s has no closing quote", quote(request))
	}
	if len(rest) == 0 || rest[0] != ' ' {
		return nil, errors.New("no status after the request")
	}
	status, rest, ok := bytes.Cut(rest[1:], space)
	code, err := parseStatus(status)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("no size after the status")
	}
	end := bytes.IndexByte(rest, ' ')
	if end < 0 {
		end = len(rest)
	}
	size, err := parseSize(rest[:end])
	if err != nil {
		return nil, err
	}
	e.Request, e.Status, e.Size = request, code, size
	return rest[end:], nil
}

func parseStatus(text []byte) (int, error) {
	if len(text) == 1 && text[0] == '-' {
		return 0, nil
	}
	code, digits := 0, len(text) == 3
	for _, c := range text {
		digits = digits && c >= '0' && c <= '9'
		code = code*10 + int(c-'0')
	}
	if !digits {
		return 0, fmt.Errorf("the status %s is neither three digits nor -", quote(text))
	}
	return code, nil
}

func parseSize(text []byte) (int64, error) {
	if len(text) == 1 && text[0] == '-' {
		return 0, nil
	}
	size, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("the size %s is neither a number of bytes below 2^63 nor -", quote(text))
	}
	return int64(size), nil
}

// parseExtras takes referer and user agent, either of which the end of the line
// may cut short.
func (e *Entry) parseExtras(rest []byte) error {
	for _, field := range []*[]byte{&e.Referer, &e.Agent} {
		if len(rest) == 0 {
			return nil
		}
		if len(rest) < 2 || rest[0] != ' ' || rest[1] != '"' {
			return fmt.Errorf("want a quoted referer and user agent after the size, got %s", quote(rest))
		}
		*field, rest, _ = cutQuoted(rest[1:])
	}
	return nil
}

// cutQuoted returns the text between the quote that s begins with and the next
// one that no backslash escapes, and what follows. Without such a quote text is
// all of it and closed is false.
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

// quote renders a bad field for an error message: escaped, and short enough
// that a megabyte of garbage stays one readable line.
func quote(field []byte) string {
	const longest = 48
	if len(field) > longest {
		return strconv.Quote(string(field[:longest])) + "..."
	}
	return strconv.Quote(string(field))
}
