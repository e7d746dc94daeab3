package accesslog

import (
	"bytes"
	"errors"
	"fmt"
)

// The Common Log Format and its derivatives:
//
//	common          %h %l %u %t "%r" %>s %b
//	combined        the fields of common, and "%{Referer}i" "%{User-agent}i"
//	vhost_combined  %v:%p, then the fields of combined. The port may be missing, as Apache logs it
//
// https://httpd.apache.org/docs/2.4/logs.html#accesslog
// https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#examples
// https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format (combined)
// https://doc.traefik.io/traefik/observability/access-logs/#format (combined, with more fields at the end)
//
// Further fields are ignored. All needed fields come before the end of the size. After it, the line may end anywhere,
// because loggers cut long lines.

// parseCommon parses a line of the common or the combined format. It refuses lines that may be vhost_combined, because
// a virtual host must not be mistaken for the client. In such a line, the extra field before the date makes the user
// name appear to have a space. So parseCommon refuses a user name with a space if the first field has a port, or if the
// identity is not "-". (Identities are no longer in use.) It also refuses an identity that is an address.
func (p *parser) parseCommon(line []byte) error {
	prefix, date, rest, err := cutDate(line)
	if err != nil {
		return err
	}
	client, identUser, ok := bytes.Cut(prefix, space)
	if !ok {
		return fmt.Errorf("want the fields host, ident and user before the date, got %s", quote(prefix))
	}
	if err := p.entry.setClient(client); err != nil {
		return err
	}
	ident, user, err := cutIdent(identUser)
	if err != nil {
		return err
	}
	fourFields := bytes.IndexByte(user, ' ') >= 0 && (!isAbsent(ident) || len(withoutPort(client)) < len(client))
	if fourFields || isAddress(ident) {
		return fmt.Errorf("doubtful fields before the date, %s: is %s a virtual host, and %s the client?",
			quote(prefix), quote(client), quote(ident))
	}
	return p.parseFromDate(date, rest)
}

func (p *parser) parseVHost(line []byte) error {
	prefix, date, rest, err := cutDate(line)
	if err != nil {
		return err
	}
	host, prefix, _ := bytes.Cut(prefix, space)
	client, identUser, ok := bytes.Cut(prefix, space)
	if !ok {
		return fmt.Errorf("want the fields virtual host, host, ident and user before the date, got %s", quote(prefix))
	}
	if err := p.entry.setClient(client); err != nil {
		return err
	}
	ident, user, err := cutIdent(identUser)
	if err != nil {
		return err
	}
	if bytes.IndexByte(user, ' ') >= 0 && !isAbsent(ident) {
		return fmt.Errorf("want four fields before the date, got %s", quote(prefix))
	}
	p.setHost(host)
	return p.parseFromDate(date, rest)
}

// These bytes separate the date from the other fields.
var (
	dateStart = []byte(" [")
	dateEnd   = []byte(`] "`)
)

// cutDate splits a line into the part before the date, the date, and the rest from the request's opening quote on. It
// first looks for the end of the date, `] "`. A user name cannot contain this text, because servers escape quotes, but
// it may contain brackets and even a forged date.
func cutDate(line []byte) (prefix, date, rest []byte, err error) {
	end := bytes.Index(line, dateEnd)
	if end < 0 {
		return nil, nil, nil, errors.New("no date in brackets followed by a request in quotes")
	}
	start := bytes.LastIndexByte(line[:end], '[') - 1 // found at once, if no bracket is in the date
	if start < 0 || line[start] != ' ' {
		start = bytes.LastIndex(line[:end], dateStart)
	}
	if start < 0 {
		return nil, nil, nil, errors.New("the date has no opening bracket")
	}
	return line[:start], line[start+len(dateStart) : end], line[end+len(dateEnd)-1:], nil
}

// cutIdent splits the identity of RFC 1413 from the user name. An absent identity or name is "-". Only the user name
// may contain spaces.
func cutIdent(text []byte) (ident, user []byte, err error) {
	ident, user, ok := bytes.Cut(text, space)
	if !ok || len(ident) == 0 || len(user) == 0 {
		return nil, nil, fmt.Errorf("want the fields ident and user before the date, got %s", quote(text))
	}
	return ident, user, nil
}

// parseFromDate parses the date and everything after it, for all three formats.
func (p *parser) parseFromDate(date, rest []byte) (err error) {
	e := &p.entry
	if e.Time, err = parseCLF(date); err != nil {
		return err
	}
	request, rest, closed := cutQuoted(rest)
	if !closed {
		return fmt.Errorf("the request %s has no closing quote", quote(request))
	}
	if len(rest) == 0 || rest[0] != ' ' {
		return errors.New("no status after the request")
	}
	status, rest, ok := bytes.Cut(rest[1:], space)
	if !ok {
		return fmt.Errorf("no size after the status %s", quote(status))
	}
	end := bytes.IndexByte(rest, ' ')
	if end < 0 {
		end = len(rest)
	}
	if err := e.setOutcome(status, rest[:end]); err != nil {
		return err
	}
	e.setRequest(p.unescape(request))
	return p.parseReferer(rest[end:])
}

// parseReferer parses the referer and the user agent. The end of the line may cut either short.
func (p *parser) parseReferer(rest []byte) error {
	for _, name := range combinedHeaders {
		if len(rest) == 0 {
			return nil
		}
		if len(rest) < 2 || rest[0] != ' ' || rest[1] != '"' {
			return fmt.Errorf("want a quoted referer and user agent after the size, got %s", quote(rest))
		}
		var value []byte
		value, rest, _ = cutQuoted(rest[1:])
		p.setHeader(name, p.unescape(value))
	}
	return nil
}

// combinedHeaders has the header fields of the combined format, in order.
var combinedHeaders = []string{"Referer", "User-Agent"}
