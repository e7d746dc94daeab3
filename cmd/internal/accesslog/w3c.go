package accesslog

import (
	"bytes"
	"errors"
	"fmt"
)

// The formats below are Extended Log File Formats. Their logs have a comment that names the fields, but the parsers do
// not read it: they expect the default fields in their order. Times are in UTC.
//
// https://www.w3.org/TR/WD-logfile.html

var errComment = errors.New("a comment of an extended log")

// parseCloudFront parses a line of an AWS CloudFront standard log, with a tab between fields:
//
//	date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent)
//	cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken
//	x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version ...
//
// https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html
func (p *parser) parseCloudFront(line []byte) error {
	var date, clock, size, client, method, path, status, referer, agent, query, host, forwarded, proto []byte
	err := p.cutExtended(line, '\t', &date, &clock, nil, &size, &client, &method, nil, &path, &status, &referer, &agent,
		&query, nil, nil, nil, &host, nil, nil, nil, &forwarded, nil, nil, nil, &proto)
	if err != nil {
		return err
	}
	if err := p.setExtended(date, clock, client, method, path, query, status, size); err != nil {
		return err
	}
	if p.entry.IsHTTP() && !isAbsent(proto) {
		p.entry.Proto = proto
	}
	p.setHost(p.percentDecoded(host))
	p.setHeader("Referer", p.percentDecoded(referer))
	p.setHeader("User-Agent", p.percentDecoded(agent))
	p.setHeader("X-Forwarded-For", p.percentDecoded(forwarded))
	return nil
}

// parseIIS parses a line of Microsoft IIS. A space is between fields. In a field, a space is written as +:
//
//	date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status
//	sc-substatus sc-win32-status time-taken
//
// https://learn.microsoft.com/en-us/previous-versions/iis/6.0-sdk/ms525807(v=vs.90)
func (p *parser) parseIIS(line []byte) error {
	var date, clock, method, path, query, client, agent, referer, status []byte
	err := p.cutExtended(line, ' ', &date, &clock, nil, &method, &path, &query, nil, nil, &client, &agent, &referer, &status,
		nil, nil, nil)
	if err != nil {
		return err
	}
	if err := p.setExtended(date, clock, client, method, path, query, status, absentMark); err != nil {
		return err
	}
	p.setHeader("Referer", referer)
	start := len(p.scratch)
	p.scratch = append(p.scratch, agent...)
	agent = p.scratch[start:]
	for i, c := range agent {
		if c == '+' {
			agent[i] = ' '
		}
	}
	p.setHeader("User-Agent", agent)
	return nil
}

// cutExtended cuts fields off a line. A nil target skips a field. CloudFront adds fields at the end.
func (p *parser) cutExtended(line []byte, separator byte, targets ...*[]byte) error {
	if line[0] == '#' {
		return errComment
	}
	for i, target := range targets {
		end := bytes.IndexByte(line, separator)
		if end < 0 {
			if end = len(line); i < len(targets)-1 {
				return fmt.Errorf("it has %d fields: want %d or more", i+1, len(targets))
			}
		}
		if target != nil {
			*target = line[:end]
		}
		line = line[min(end+1, len(line)):]
	}
	if separator == ' ' && len(line) > 0 {
		return fmt.Errorf("it has more than %d fields: only those that IIS logs by default are read", len(targets))
	}
	return nil
}

func (p *parser) setExtended(date, clock, client, method, path, query, status, size []byte) (err error) {
	e := &p.entry
	start := len(p.scratch)
	p.scratch = append(append(append(append(p.scratch, date...), 'T'), clock...), 'Z')
	if len(date) != len("2006-01-02") {
		return badForm(date, "2006-01-02")
	}
	if e.Time, err = parseISO(p.scratch[start:]); err != nil {
		return err
	}
	if err := e.setClient(client); err != nil {
		return err
	}
	if !looksLikeAddress(client) { // perhaps the log does not have the default fields
		return fmt.Errorf("the client %s is not an address", quote(client))
	}
	if err := e.setOutcome(status, size); err != nil {
		return err
	}
	if isAbsent(method) || isAbsent(path) {
		return nil
	}
	e.Method, e.Target = method, path
	if !isAbsent(query) {
		start := len(p.scratch)
		p.scratch = append(append(append(p.scratch, path...), '?'), query...)
		e.Target = p.scratch[start:]
	}
	return nil
}

// looksLikeAddress reports whether a text may be an address. It does not allocate.
func looksLikeAddress(text []byte) bool {
	text, _, _ = bytes.Cut(text, []byte("%")) // without the zone
	for _, c := range text {
		if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' || c == '.' || c == ':') {
			return false
		}
	}
	return bytes.IndexByte(text, '.') >= 0 || bytes.IndexByte(text, ':') >= 0
}

// percentDecoded undoes percent-encoding. Invalid encodings stay unchanged.
func (p *parser) percentDecoded(text []byte) []byte {
	if bytes.IndexByte(text, '%') < 0 {
		return text
	}
	start := len(p.scratch)
	for i := 0; i < len(text); i++ {
		if b, ok := hexByte(text[i:], '%'); ok {
			p.scratch = append(p.scratch, b)
			i += 2
		} else {
			p.scratch = append(p.scratch, text[i])
		}
	}
	return p.scratch[start:]
}
