package accesslog

import (
	"bytes"
	"errors"
	"net/textproto"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A parser makes an entry of each line. It reuses its memory for the next line.
type parser struct {
	entry    Entry
	scratch  []byte            // texts of the entry that differ from the bytes in the line
	wrapped  []byte            // the line itself, if it was inside a line of JSON
	names    map[string]string // canonical names of header fields, by the names in the log
	optional *fieldSet         // the optional fields of the lines so far; nil if the caller does not need them

	json       jsontext.Decoder
	input      bytes.Buffer
	members    []member
	hasHeaders bool // there was an object of header fields, perhaps an empty one
}

var (
	errEmpty     = errors.New("the line is empty")
	errNoMessage = errors.New("nothing after the header of syslog or of a container")
)

// parse fills the entry. The entry must not be used after an error.
func (p *parser) parse(f *format, line []byte) error {
	if line = trimBOM(line); isBlank(line) {
		return errEmpty
	}
	if line = p.cutContainer(line); isBlank(line) {
		return errNoMessage
	}
	if line = cutSyslog(line); isBlank(line) {
		return errNoMessage
	}
	p.entry = Entry{Headers: p.entry.Headers[:0]}
	p.scratch = p.scratch[:0]
	return f.parse(p, line)
}

func isBlank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// setHeader adds a header field, unless the server logged that there was none.
func (p *parser) setHeader(name string, value []byte) {
	if p.optional != nil {
		p.optional.headers[name] = true
	}
	if !isAbsent(value) {
		p.entry.Headers = append(p.entry.Headers, Header{name, value})
	}
}

// setUnredacted is setHeader for servers that write REDACTED instead of a secret, as Caddy and Traefik do. A client may
// also send the text REDACTED. So the log has the header only if some line has another value.
func (p *parser) setUnredacted(name string, value []byte) {
	if string(value) != "REDACTED" {
		p.setHeader(name, value)
	} else if p.optional != nil && !p.optional.headers[name] {
		p.optional.headers[name] = false
	}
}

// setHost sets the host of the request, unless the server logged that there was none.
func (p *parser) setHost(host []byte) {
	if p.optional != nil {
		p.optional.host = true
	}
	if !isAbsent(host) {
		p.entry.Host = host
	}
}

// maxNames bounds the remembered names of header fields, because clients can invent names.
const maxNames = 1000

// canonical returns the canonical form of the name of a header field. In the log, the name may have another separator
// instead of dashes. loggedName is this name with the prefix that the log may have.
func (p *parser) canonical(loggedName, name []byte, separator string) string {
	if cached, ok := p.names[string(loggedName)]; ok {
		return cached
	}
	canonical := textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(string(name), separator, "-"))
	if len(p.names) < maxNames {
		if p.names == nil {
			p.names = map[string]string{}
		}
		p.names[string(loggedName)] = canonical
	}
	return canonical
}

// A fieldSet records which optional fields the lines have: fields that not every log has.
type fieldSet struct {
	host       bool
	allHeaders bool            // a line has all header fields, except those that are redacted
	headers    map[string]bool // header fields that occur; true if a line has its value, false if all are redacted
}

func newFieldSet() *fieldSet { return &fieldSet{headers: map[string]bool{}} }

func (s *fieldSet) add(line *fieldSet) {
	s.host, s.allHeaders = s.host || line.host, s.allHeaders || line.allHeaders
	for name, hasValue := range line.headers {
		s.headers[name] = s.headers[name] || hasValue
	}
}

func (s *fieldSet) reset() {
	s.host, s.allHeaders = false, false
	clear(s.headers)
}

func (s *fieldSet) fields() Fields {
	f := Fields{Host: s.host, allHeaders: s.allHeaders}
	for name, hasValue := range s.headers {
		if hasValue != s.allHeaders {
			f.headers = append(f.headers, name)
		}
	}
	if s.allHeaders {
		for _, secret := range caddySecrets {
			if _, ok := s.headers[secret]; !ok {
				f.headers = append(f.headers, secret)
			}
		}
	}
	slices.Sort(f.headers)
	return f
}
