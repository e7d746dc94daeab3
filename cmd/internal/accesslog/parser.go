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
	entry   Entry
	scratch []byte            // texts of the entry that differ from the bytes in the line
	wrapped []byte            // the line itself, if it was inside a line of JSON
	names   map[string]string // canonical names of header fields, by the names in the log
	learned *learned          // the fields of the lines so far; nil if the caller does not need them

	json    jsontext.Decoder
	input   bytes.Buffer
	members []member
	headers bool // there was an object of header fields, perhaps an empty one
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
	if p.learned != nil {
		p.learned.headers[name] = true
	}
	if !absent(value) {
		p.entry.Headers = append(p.entry.Headers, Header{name, value})
	}
}

// setUnredacted is setHeader for servers that write REDACTED instead of a secret, as Caddy and Traefik do. A client may
// also send the text REDACTED. So the log has the header only if some line has another value.
func (p *parser) setUnredacted(name string, value []byte) {
	if string(value) != "REDACTED" {
		p.setHeader(name, value)
	} else if p.learned != nil && !p.learned.headers[name] {
		p.learned.headers[name] = false
	}
}

// setHost sets the host of the request, unless the server logged that there was none.
func (p *parser) setHost(host []byte) {
	if p.learned != nil {
		p.learned.host = true
	}
	if !absent(host) {
		p.entry.Host = host
	}
}

// mostNames bounds the remembered names of header fields, because clients can invent names.
const mostNames = 1000

// canonical returns the canonical form of a header field's name. In the log, the name may have another separator
// instead of dashes.
func (p *parser) canonical(logged, name []byte, separator string) string {
	if known, ok := p.names[string(logged)]; ok {
		return known
	}
	canonical := textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(string(name), separator, "-"))
	if len(p.names) < mostNames {
		if p.names == nil {
			p.names = map[string]string{}
		}
		p.names[string(logged)] = canonical
	}
	return canonical
}

// learned records which optional fields the lines have: fields that not every log has.
type learned struct {
	host    bool
	all     bool            // every header field, except those that are redacted
	headers map[string]bool // header fields that occur; true if a line has its value, false if all are redacted
}

func newLearned() *learned { return &learned{headers: map[string]bool{}} }

func (l *learned) add(line *learned) {
	l.host, l.all = l.host || line.host, l.all || line.all
	for name, held := range line.headers {
		l.headers[name] = l.headers[name] || held
	}
}

func (l *learned) reset() {
	l.host, l.all = false, false
	clear(l.headers)
}

func (l *learned) fields() Fields {
	f := Fields{Host: l.host, all: l.all}
	for name, held := range l.headers {
		if held != l.all {
			f.headers = append(f.headers, name)
		}
	}
	if l.all {
		for _, secret := range caddySecrets {
			if _, seen := l.headers[secret]; !seen {
				f.headers = append(f.headers, secret)
			}
		}
	}
	slices.Sort(f.headers)
	return f
}
