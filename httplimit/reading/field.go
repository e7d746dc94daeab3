package reading

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// parsedFields caches the header fields that were read, and the address of the client.
type parsedFields struct {
	fields      []parsedField
	fieldBuffer [2]parsedField // enough for most requests
	lineBuffer  [2]fieldLine   // for the lines of the fields
	usedLines   int            // how many lines of lineBuffer are used
	finder      any            // the finder that has found addr
	addr        netip.Addr
}

// A parsedField is a field of a header with its lines.
type parsedField struct {
	name  string
	lines []fieldLine
}

// A fieldLine is a line of a field, in the form in which it is compared.
type fieldLine struct {
	text  string // [spelling.Line]
	exact bool   // every server reads this text, even if it does not remove Unicode blanks
}

func lineOf(name, line string) fieldLine {
	visible := spelling.TrimBlanks(line)
	return fieldLine{spelling.Line(name, visible), len(visible) == len(strings.Trim(line, " \t"))}
}

// linesOf returns the lines of a field. It reads a field only once.
func (p *Parsed) linesOf(r *http.Request, name string) []fieldLine {
	p.work++
	for i := range p.fields.fields {
		if field := &p.fields.fields[i]; field.name == name {
			return field.lines
		}
	}
	f := &p.fields
	var lines []fieldLine
	if n := len(r.Header[name]); n <= len(f.lineBuffer)-f.usedLines {
		lines = f.lineBuffer[f.usedLines : f.usedLines : f.usedLines+n]
		f.usedLines += n
	} else {
		lines = make([]fieldLine, 0, n)
	}
	for _, line := range r.Header[name] {
		p.work += 1 + len(line)/8
		lines = append(lines, lineOf(name, line))
	}
	if f.fields == nil {
		f.fields = f.fieldBuffer[:0]
	}
	f.fields = append(f.fields, parsedField{name, lines})
	return lines
}

// shortLine is a length in bytes. A line that is not longer is read again each time, because this is faster than
// caching it.
const shortLine = 64

// FirstLine returns the first line of a field, or "" if the field is absent. The line has the form of the values of a
// [HeaderField]. The name must be in the form of [http.CanonicalHeaderKey].
func FirstLine(r *http.Request, name string) string {
	lines := r.Header[name]
	if len(lines) == 0 {
		return ""
	}
	if p := parsedOf(r); p != nil && len(lines[0]) > shortLine {
		return p.linesOf(r, name)[0].text
	}
	return spelling.Line(name, lines[0])
}

// ClientAddr returns the client's address, which the function find returns. The pointer in the argument finder
// identifies this function. If the request has a [Parsed], the address is cached until ClientAddr is called with
// another finder.
func ClientAddr(r *http.Request, finder any, find func() netip.Addr) netip.Addr {
	p := parsedOf(r)
	if p == nil {
		return find()
	}
	if p.work++; p.fields.finder != finder {
		p.fields.finder, p.fields.addr = finder, find()
	}
	return p.fields.addr
}

// meetsFields reports whether each wanted field of the header has a wanted value in one of its lines.
func (m *Match) meetsFields(r *http.Request) bool {
	for i := range m.Headers {
		if want := &m.Headers[i]; !anyLine(r, want, func(line fieldLine) bool {
			return len(want.Values) == 0 || slices.ContainsFunc(want.Values, func(value string) bool {
				return line.text == value || !m.KeepCase && strings.EqualFold(line.text, value)
			})
		}) {
			return false
		}
	}
	return true
}

// matchesFields is meetsFields in the reading of net/http only. In this reading, letter case matters.
func (m *Match) matchesFields(r *http.Request) bool {
	for i := range m.Headers {
		if want := &m.Headers[i]; !anyLine(r, want, func(line fieldLine) bool {
			return len(want.Values) == 0 || slices.Contains(want.Values, line.text)
		}) {
			return false
		}
	}
	return true
}

// certainFields reports whether each wanted field is present and has only wanted values. Every server must read the
// values in this way.
func (m *Match) certainFields(r *http.Request) bool {
	for i := range m.Headers {
		if want := &m.Headers[i]; len(r.Header[want.Name]) == 0 || anyLine(r, want, func(line fieldLine) bool {
			return len(want.Values) > 0 && !(line.exact && slices.Contains(want.Values, line.text))
		}) {
			return false
		}
	}
	return true
}

func anyLine(r *http.Request, field *Field, accepts func(fieldLine) bool) bool {
	if p := parsedOf(r); p != nil {
		lines := p.linesOf(r, field.Name)
		p.work += len(lines)
		return slices.ContainsFunc(lines, accepts)
	}
	return slices.ContainsFunc(r.Header[field.Name], func(line string) bool { return accepts(lineOf(field.Name, line)) })
}

// IsOverridden reports whether a header field, such as X-HTTP-Method-Override, names another method than the request's.
// Some frameworks use the method in such a field.
func IsOverridden(r *http.Request) bool {
	return slices.ContainsFunc(fieldMethods(r), func(method string) bool { return !strings.EqualFold(method, r.Method) })
}

// fieldMethods returns the methods that header fields name. It does not allocate if there are none.
func fieldMethods(r *http.Request) (methods []string) {
	p := parsedOf(r)
	if p == nil {
		return spelling.MethodOverrides(r.Header)
	}
	for _, name := range spelling.MethodFields {
		if len(r.Header[name]) == 0 {
			continue
		}
		for _, line := range p.linesOf(r, name) {
			if line.text != "" {
				methods = append(methods, line.text)
			}
		}
	}
	return methods
}
