package accesslog

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// A member is a scalar value in a line of JSON, with its name and the object that contains it.
type member struct {
	parent      parent
	name, value []byte
}

// parent says in which object a member is. Members of other objects are skipped.
type parent int

const (
	topObject         parent = iota
	requestObject            // Caddy's "request"
	headersObject            // "headers" in it: an array of values gives one member for each
	httpRequestObject        // Google Cloud's "httpRequest"
	otherObject
)

// parseJSON collects the members of a line that is one JSON object. A duplicate name is an error: a client can forge a
// member if the server does not escape what it logs. Bytes that are not UTF-8 are accepted, because nginx logs bytes as
// they were sent. The tokenizer is from encoding/json/v2, which allocates nothing for a token.
func (p *parser) parseJSON(line []byte) error {
	if line[0] != '{' {
		return errors.New("not a JSON object")
	}
	p.members, p.hasHeaders = p.members[:0], false
	p.input.Reset()
	p.input.Write(line)
	p.json.Reset(&p.input, jsontext.AllowInvalidUTF8(true))
	if err := p.readObject(topObject); err != nil {
		return notJSON(err)
	}
	if _, err := p.json.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("more text after the JSON object, from byte %d on", p.json.InputOffset())
	}
	return nil
}

func notJSON(err error) error {
	const longest = 200 // the longest name in an error
	if syntax := (*jsontext.SyntacticError)(nil); errors.As(err, &syntax) {
		text := syntax.Err.Error()
		return fmt.Errorf("no JSON at byte %d: %s", syntax.ByteOffset+1, text[:min(len(text), longest)])
	}
	return fmt.Errorf("no whole JSON object: %w", err)
}

func (p *parser) readObject(container parent) error {
	if _, err := p.json.ReadToken(); err != nil {
		return err
	}
	for p.json.PeekKind() != '}' {
		quoted, err := p.json.ReadValue()
		if err != nil {
			return err
		}
		name, err := p.unquote(quoted)
		if err != nil {
			return err
		}
		if err := p.readValue(container, name); err != nil {
			return err
		}
	}
	_, err := p.json.ReadToken()
	return err
}

func (p *parser) readValue(container parent, name []byte) error {
	switch p.json.PeekKind() {
	case '{':
		if child := container.child(name); child != otherObject {
			p.hasHeaders = p.hasHeaders || child == headersObject
			return p.readObject(child)
		}
		return p.json.SkipValue()
	case '[':
		if container != headersObject {
			return p.json.SkipValue()
		}
		return p.readArray(container, name)
	}
	raw, err := p.json.ReadValue()
	if err != nil || string(raw) == "null" {
		return err
	}
	text, err := p.unquote(raw)
	p.members = append(p.members, member{container, name, text})
	return err
}

func (p *parser) readArray(container parent, name []byte) error {
	if _, err := p.json.ReadToken(); err != nil {
		return err
	}
	for p.json.PeekKind() != ']' {
		switch p.json.PeekKind() {
		case '{', '[':
			if err := p.json.SkipValue(); err != nil {
				return err
			}
		default:
			if err := p.readValue(container, name); err != nil {
				return err
			}
		}
	}
	_, err := p.json.ReadToken()
	return err
}

func (p parent) child(name []byte) parent {
	switch {
	case p == topObject && string(name) == "request":
		return requestObject
	case p == requestObject && string(name) == "headers":
		return headersObject
	case p == topObject && string(name) == "httpRequest":
		return httpRequestObject
	}
	return otherObject
}

// unquote returns a scalar as text. It is a copy, because the tokenizer reuses the memory.
func (p *parser) unquote(raw []byte) ([]byte, error) {
	start := len(p.scratch)
	if raw[0] != '"' {
		p.scratch = append(p.scratch, raw...)
		return p.scratch[start:], nil
	}
	var err error
	p.scratch, err = jsontext.AppendUnquote(p.scratch, raw)
	return p.scratch[start:], err
}

// rawFields has the fields that the JSON formats have in common, as logged.
type rawFields struct {
	client, time, method, target, proto, line, status, size []byte
}

// setRaw fills the entry from raw. Some logs have the complete request line in one field. Then raw.line is set, and the
// method, target and protocol are not set.
func (p *parser) setRaw(raw *rawFields) (err error) {
	e := &p.entry
	if err := e.setClient(raw.client); err != nil {
		return err
	}
	if isAbsent(raw.time) {
		return errors.New("no time")
	}
	if e.Time, err = parseTime(raw.time); err != nil {
		return err
	}
	if err := e.setOutcome(orAbsent(raw.status), orAbsent(raw.size)); err != nil {
		return err
	}
	if !isAbsent(raw.line) {
		e.setRequest(raw.line)
		return nil
	}
	if !isAbsent(raw.method) && !isAbsent(raw.target) {
		e.Method, e.Target = raw.method, raw.target
		if !isAbsent(raw.proto) {
			e.Proto = raw.proto
		}
	}
	return nil
}

// orAbsent returns the field, or the text for an absent number if the field was not logged.
func orAbsent(field []byte) []byte {
	if len(field) == 0 {
		return absentMark
	}
	return field
}

var absentMark = []byte("-")

// setIfAbsent sets the target to the value, unless the target is already set.
func setIfAbsent(target *[]byte, value []byte) {
	if isAbsent(*target) {
		*target = value
	}
}
