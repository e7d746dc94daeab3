package rulefile

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// An entry describes one key of a mapping in a rule file. These parts are made from the entries: the decoder, the JSON
// Schema, the tables of docs/configuration.md, the list of changes of a reload, and the summary of weir check. So a new
// key needs only one entry, and the code that uses its field.
//
// An entry has a pointer to its field. Each mapping has a struct with the fields, and a method that makes the entries.
type entry struct {
	name     string
	standard string // value if a file does not have the key, as a file would write it; "" for the zero value
	help     string // for docs/configuration.md and the schema
	missing  string // what to write, if the key is mandatory; "" if it is not
	instead  string // text for docs/configuration.md, if standard alone would not be true
	span     string // the valid values, for docs/configuration.md

	read   func(d *decoder, n *yaml.Node, what string)
	fill   func() // sets the field to the standard value
	schema func() schema
	value  func() any // what a reload compares; nil if changes of the key are reported in another way

	label string          // label of the lines in the summary
	says  func() []string // lines in the summary; nil for none
}

func at[V any](name string, k kind[V], into *V, standard, help string) entry {
	return entry{
		name: name, standard: standard, help: help, span: k.span,
		read: func(d *decoder, n *yaml.Node, what string) { k.read(d, n, what, into) },
		fill: func() {
			switch {
			case standard != "":
				d := &decoder{}
				if k.read(d, scalar(standard), name, into); len(d.Errors) > 0 {
					panic(d.Errors.Error()) // a mistake in the table itself
				}
			case k.fill != nil:
				k.fill(into)
			}
		},
		schema: k.schema,
		value:  func() any { return *into },
	}
}

// The method needed makes the entry mandatory. hint says what to write.
func (e entry) needed(hint string) entry {
	e.missing = hint
	return e
}

// The method unless sets the text of docs/configuration.md about the standard value.
func (e entry) unless(text string) entry {
	e.instead = text
	return e
}

// The method within sets the text of docs/configuration.md about the range.
func (e entry) within(span string) entry {
	e.span = span
	return e
}

// The method apart marks an entry for which a reload does not compare values, because it reports the changes in another
// way.
func (e entry) apart() entry {
	e.value = nil
	return e
}

// comparing sets a function whose result a reload compares, instead of the entry's field.
func (e entry) comparing(value func() any) entry {
	e.value = value
	return e
}

// saying adds a line with a label to the summary of a file. The function says returns the line, or "" for none.
func (e entry) saying(label string, says func() string) entry {
	return e.listing(label, func() []string {
		if line := says(); line != "" {
			return []string{line}
		}
		return nil
	})
}

func (e entry) listing(label string, says func() []string) entry {
	e.label, e.says = label, says
	return e
}

// A section describes a mapping of a rule file: its entries, and how they are checked together.
type section struct {
	name    string // name in messages
	help    string
	entries []entry
	brief   string // if the value is not a mapping, this entry gets it; "" for none
	open    bool   // keys that begin with x- are ignored
	// check finds mistakes that involve several entries. The parameter seen has the values in the file, by their keys.
	check func(d *decoder, n *yaml.Node, seen map[string]*yaml.Node)

	anyOf [][]string // for the schema: lists of keys of which one list must be present
	least int        // for the schema: how many keys are needed
	most  int        // for the schema: how many keys there may be; 0 for all
}

// ownKeys stands for keys that begin with x-. A section that is open can have them, so that users can put anchors
// there.
const ownKeys = "x-..."

// fill sets every field to the value that it has if the file does not set it.
func (s *section) fill() {
	for _, e := range s.entries {
		e.fill()
	}
}

// read sets the fields from a mapping, or from a value of the brief entry. It reads the entries in the order of the
// section, not of the file. So an entry may use what an earlier entry has read.
func (s *section) read(d *decoder, n *yaml.Node) {
	s.fill()
	var seen map[string]*yaml.Node
	if s.brief != "" && yamlfile.Target(n).Kind != yaml.MappingNode {
		seen = map[string]*yaml.Node{s.brief: n}
		s.entry(s.brief).read(d, n, s.name)
	} else if seen = s.keys(d, n); seen == nil {
		return
	}
	if s.check != nil {
		s.check(d, n, seen)
	}
}

func (s *section) entry(name string) *entry {
	for i := range s.entries {
		if s.entries[i].name == name {
			return &s.entries[i]
		}
	}
	return nil
}

// keys returns the values of a mapping by key, or nil if n is not a mapping. If a key is misspelled, its value is under
// the key that was probably meant.
func (s *section) keys(d *decoder, n *yaml.Node) map[string]*yaml.Node {
	names := make([]string, 0, len(s.entries)+1)
	for _, e := range s.entries {
		names = append(names, e.name)
	}
	if s.open {
		names = append(names, ownKeys)
	}
	seen, good := map[string]*yaml.Node{}, map[string]*yaml.Node{}
	if !d.pairs(n, s.name, func(key, value *yaml.Node) {
		name := yamlfile.Target(key).Value
		switch {
		case s.open && strings.HasPrefix(name, "x-"):
		case s.entry(name) == nil:
			d.Fail(key, "unknown key %s%s", yamlfile.Quote(name), didYouMean(name, names))
			if near := nearest(name, names); near != "" {
				name = near
			}
			if seen[name] == nil {
				seen[name] = value
			}
		case yamlfile.IsNull(yamlfile.Target(value)):
			seen[name] = value
			d.Fail(value, "%s: no value: write one, or leave the key out", name)
		default:
			seen[name], good[name] = value, value
		}
	}) {
		return nil
	}
	for _, e := range s.entries {
		if value := good[e.name]; value != nil {
			e.read(d, value, e.name)
		}
		if e.missing != "" && seen[e.name] == nil {
			d.Fail(n, "%s%s%s: %s", s.name, lacks(s.name), e.name, e.missing)
		}
	}
	return seen
}

// lacks returns the text between the name of a section and the name of a missing key, in a message.
func lacks(name string) string {
	if strings.HasPrefix(name, "a ") {
		return " without "
	}
	return ": no "
}

// differing returns the names of the entries that differ from the previous file. It leaves out entries whose changes a
// reload does not report.
func (s *section) differing(before section) (names []string) {
	for i, e := range s.entries {
		if e.value != nil && !reflect.DeepEqual(e.value(), before.entries[i].value()) {
			names = append(names, e.name)
		}
	}
	return names
}

// summary writes the lines of the entries in the summary.
func (s *section) summary(line func(label, text string)) {
	for _, e := range s.entries {
		if e.says == nil {
			continue
		}
		for _, text := range e.says() {
			line(e.label, text)
		}
	}
}
