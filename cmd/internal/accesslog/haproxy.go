package accesslog

import (
	"bytes"
	"errors"
	"fmt"
)

// parseHTTPLog parses a line of HAProxy with "option httplog", or with "option httpslog", which adds fields at the end:
//
//	client_ip:client_port [request_date] frontend backend/server TR/Tw/Tc/Tr/Ta status_code bytes_read
//	captured_request_cookie captured_response_cookie termination_state actconn/feconn/beconn/srv_conn/retries
//	srv_queue/backend_queue {captured_request_headers} {captured_response_headers} "http_request"
//
// HAProxy writes a quote, and a brace in a header, as # with two hexadecimal digits. So the first quote of a line is
// the quote before the request. Captured headers are not used, because they have no names in the log. The date has no
// zone and is read as UTC.
//
// https://docs.haproxy.org/3.0/configuration.html#8.2.3 (HTTP log format), #8.6 (non-printable characters)
func (p *parser) parseHTTPLog(line []byte) error {
	var client, date, timers, status, size, counters, queues []byte
	rest, err := cutFields(line, &client, &date, nil, nil, &timers, &status, &size, nil, nil, nil, &counters, &queues)
	if err != nil {
		return err
	}
	if bytes.Count(timers, slash) != 4 || bytes.Count(counters, slash) != 4 || bytes.Count(queues, slash) != 1 {
		return fmt.Errorf("want five timers, five counters and two queues, got %s, %s and %s",
			quote(timers), quote(counters), quote(queues))
	}
	e := &p.entry
	port := bytes.LastIndexByte(client, ':') // an IPv6 address has no brackets here
	if port < 0 || !isNumber(client[port+1:]) {
		return fmt.Errorf("the client %s has no port", quote(client))
	}
	if err := e.setClient(client[:port]); err != nil {
		return err
	}
	if !bytes.HasPrefix(date, []byte("[")) || !bytes.HasSuffix(date, []byte("]")) {
		return fmt.Errorf("want a date in brackets after the client, got %s", quote(date))
	}
	if e.Time, err = parseHAProxy(date[1 : len(date)-1]); err != nil {
		return err
	}
	// With "option logasap", the size has a plus sign and is the number of bytes sent so far.
	if err := e.setOutcome(status, bytes.TrimPrefix(size, []byte("+"))); err != nil {
		return err
	}
	start := bytes.IndexByte(rest, '"')
	if start < 0 {
		return errors.New("no request in quotes")
	}
	end := bytes.IndexByte(rest[start+1:], '"')
	if end < 0 {
		return fmt.Errorf("the request %s has no closing quote: the line was cut", quote(rest[start+1:]))
	}
	e.setRequest(p.unescapeHash(rest[start+1 : start+1+end]))
	return nil
}

var slash = []byte("/")

func (p *parser) unescapeHash(text []byte) []byte {
	if bytes.IndexByte(text, '#') < 0 {
		return text
	}
	start := len(p.scratch)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if b, ok := hexByte(text[i:], '#'); ok {
			c = b
			i += 2
		}
		p.scratch = append(p.scratch, c)
	}
	return p.scratch[start:]
}
