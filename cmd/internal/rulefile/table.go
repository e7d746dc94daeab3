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
	name         string
	defaultValue string // value if a file does not have the key, as a file would write it; "" for the zero value
	help         string // for docs/configuration.md and the schema
	requiredHint string // what to write, if the key is mandatory; "" if it is optional
	defaultNote  string // text about the default for docs/configuration.md; "" for defaultValue alone
	rangeText    string // the valid values, for docs/configuration.md

	read   func(d *decoder, n *yaml.Node, keyName string)
	fill   func() // sets the field to the default
	schema func() schema
	value  func() any // what a reload compares; nil if changes of the key are reported in another way

	label   string          // label of the lines in the summary
	summary func() []string // lines in the summary; nil for none
}

// newEntry returns an entry whose value is stored in dst.
func newEntry[V any](name string, k kind[V], dst *V, defaultValue, help string) entry {
	return entry{
		name: name, defaultValue: defaultValue, help: help, rangeText: k.rangeText,
		read: func(d *decoder, n *yaml.Node, keyName string) { k.read(d, n, keyName, dst) },
		fill: func() {
			switch {
			case defaultValue != "":
				d := &decoder{}
				if k.read(d, parseNode(defaultValue), name, dst); len(d.Errors) > 0 {
					panic(d.Errors.Error()) // a mistake in the table itself
				}
			case k.fill != nil:
				k.fill(dst)
			}
		},
		schema: k.schema,
		value:  func() any { return *dst },
	}
}

// required makes the entry mandatory. hint says what to write.
func (e entry) required(hint string) entry {
	e.requiredHint = hint
	return e
}

// withDefaultText sets the text of docs/configuration.md about the default.
func (e entry) withDefaultText(text string) entry {
	e.defaultNote = text
	return e
}

// withRange sets the text of docs/configuration.md about the range.
func (e entry) withRange(text string) entry {
	e.rangeText = text
	return e
}

// withoutDiff marks an entry whose values a reload does not compare, because it reports the changes in another way.
func (e entry) withoutDiff() entry {
	e.value = nil
	return e
}

// withDiff sets a function whose result a reload compares, instead of the entry's field.
func (e entry) withDiff(value func() any) entry {
	e.value = value
	return e
}

// withSummary adds a line with a label to the summary of a file. The function summary returns the line, or "" for none.
func (e entry) withSummary(label string, summary func() string) entry {
	return e.withSummaryLines(label, func() []string {
		if line := summary(); line != "" {
			return []string{line}
		}
		return nil
	})
}

// withSummaryLines is withSummary for any number of lines.
func (e entry) withSummaryLines(label string, summary func() []string) entry {
	e.label, e.summary = label, summary
	return e
}

// A section describes a mapping of a rule file: its entries, and how they are checked together.
type section struct {
	name          string // name in messages
	help          string
	entries       []entry
	shorthand     string // name of the entry that gets a value that is not a mapping; "" for none
	hasExtensions bool   // keys that begin with x- are ignored
	// check finds mistakes that involve several entries. The parameter nodes has the values in the file by key.
	check func(d *decoder, n *yaml.Node, nodes map[string]*yaml.Node)

	anyOf         [][]string // for the schema: lists of keys of which one list must be present
	minProperties int        // for the schema: how many keys are needed
	maxProperties int        // for the schema: how many keys there may be; 0 for all
}

// extensionKeys stands for keys that begin with x-. A section with hasExtensions can have them, so that users can put
// anchors there.
const extensionKeys = "x-..."

// fill sets every field to its default.
func (s *section) fill() {
	for _, e := range s.entries {
		e.fill()
	}
}

// read sets the fields from a mapping, or from a value of the shorthand entry. It reads the entries in the order of the
// section, not of the file. So an entry may use what an earlier entry has read.
func (s *section) read(d *decoder, n *yaml.Node) {
	s.fill()
	var nodes map[string]*yaml.Node
	if s.shorthand != "" && yamlfile.Target(n).Kind != yaml.MappingNode {
		nodes = map[string]*yaml.Node{s.shorthand: n}
		s.entry(s.shorthand).read(d, n, s.name)
	} else if nodes = s.keys(d, n); nodes == nil {
		return
	}
	if s.check != nil {
		s.check(d, n, nodes)
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

// keys reads the entries of a mapping. It returns the values by key, or nil if n is not a mapping. If a key is
// misspelled, its value is under the key that was probably meant.
func (s *section) keys(d *decoder, n *yaml.Node) map[string]*yaml.Node {
	names := make([]string, 0, len(s.entries)+1)
	for _, e := range s.entries {
		names = append(names, e.name)
	}
	if s.hasExtensions {
		names = append(names, extensionKeys)
	}
	nodes, validNodes := map[string]*yaml.Node{}, map[string]*yaml.Node{}
	if !d.pairs(n, s.name, func(key, value *yaml.Node) {
		name := yamlfile.Target(key).Value
		switch {
		case s.hasExtensions && strings.HasPrefix(name, "x-"):
		case s.entry(name) == nil:
			d.Fail(key, "unknown key %s%s", yamlfile.Quote(name), didYouMean(name, names))
			if suggestion := nearest(name, names); suggestion != "" {
				name = suggestion
			}
			if nodes[name] == nil {
				nodes[name] = value
			}
		case yamlfile.IsNull(yamlfile.Target(value)):
			nodes[name] = value
			d.Fail(value, "%s: no value: write one, or leave the key out", name)
		default:
			nodes[name], validNodes[name] = value, value
		}
	}) {
		return nil
	}
	for _, e := range s.entries {
		if value := validNodes[e.name]; value != nil {
			e.read(d, value, e.name)
		}
		if e.requiredHint != "" && nodes[e.name] == nil {
			d.Fail(n, "%s%s%s: %s", s.name, missingKeyText(s.name), e.name, e.requiredHint)
		}
	}
	return nodes
}

// missingKeyText returns the text between the name of a section and the name of a missing key, in a message.
func missingKeyText(name string) string {
	if strings.HasPrefix(name, "a ") {
		return " without "
	}
	return ": no "
}

// changedKeys returns the names of the entries that differ from the previous file. It leaves out entries whose values a
// reload does not compare.
func (s *section) changedKeys(before section) (names []string) {
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
		if e.summary == nil {
			continue
		}
		for _, text := range e.summary() {
			line(e.label, text)
		}
	}
}
