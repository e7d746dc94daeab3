package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v4"
)

// maxNodes bounds the values that are looked at, each as often as aliases name it, so that
// a short file cannot stand for an endless one.
const maxNodes = 200_000

// maxErrors is where the reading stops: a file with more mistakes is another kind of file.
const maxErrors = 100

// A decoder walks the nodes of a file and gathers what is wrong with them. (The library's
// own decoding into structs stops at some mistakes, and knows only the line.)
type decoder struct {
	file   string
	errors Errors
	nodes  int
	full   bool // of nodes or errors: nothing more is read

	certificates []certificate // to be tried by Load
	wishes       []storeWish   // of the rules
}

type certificate struct {
	at    *yaml.Node
	files *TLS
}

// fail notes a mistake at the place of n.
func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	if d.full {
		return
	}
	d.errors = append(d.errors, &Error{d.file, n.Line, n.Column, fmt.Sprintf(format, args...)})
	d.full = len(d.errors) >= maxErrors
}

// enter counts a node and returns what it stands for; nil if there is nothing to read.
func (d *decoder) enter(n *yaml.Node) *yaml.Node {
	if d.full {
		return nil
	}
	if d.nodes++; d.nodes > maxNodes {
		d.fail(n, "the file comes to more than %d values, each counted as often as an alias names it: use fewer aliases", maxNodes)
		d.full = true
		return nil
	}
	return target(n)
}

// target follows an alias. It stands for a node that is none itself.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// kindOf names what a node is, for messages.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if isNull(n) {
			return "nothing"
		}
		return quote(n.Value)
	}
	return "something else"
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// quote renders a value in a message: escaped, and short.
func quote(s string) string {
	const longest = 60
	if len(s) > longest {
		return strconv.Quote(s[:longest]) + "..."
	}
	return strconv.Quote(s)
}

// A field is a key of a mapping and what reads its value.
type field struct {
	name string
	read func(*yaml.Node)
}

// ownKeys is the name of a field that stands for all keys which begin with x-. They are passed
// over: a place for anchors.
const ownKeys = "x-..."

// mapping reads a mapping of the fields. The keys that were there, or were meant by a slip, are
// returned with their values; nil if n is no mapping.
func (d *decoder) mapping(n *yaml.Node, what string, fields ...field) map[string]*yaml.Node {
	known := make(map[string]func(*yaml.Node), len(fields))
	names := make([]string, len(fields))
	for i, f := range fields {
		known[f.name], names[i] = f.read, f.name
	}
	seen := map[string]*yaml.Node{}
	ok := d.pairs(n, what, func(key, value *yaml.Node) {
		name := target(key).Value
		read, ok := known[name]
		if _, own := known[ownKeys]; own && strings.HasPrefix(name, "x-") {
			return
		}
		if !ok {
			d.fail(key, "unknown key %s%s", quote(name), didYouMean(name, names))
			if near := nearest(name, names); near != "" && seen[near] == nil {
				seen[near] = value
			}
			return
		}
		seen[name] = value
		if isNull(target(value)) {
			d.fail(value, "%s: no value: write one, or leave the key out", name)
			return
		}
		read(value)
	})
	if !ok {
		return nil
	}
	return seen
}

// mergeKey is YAML's way to take the keys of other mappings over: <<: *anchor.
const mergeKey = "<<"

// pairs calls each for the keys of a mapping, once each. Keys that are merged in come last, and
// those that the mapping has itself go before them.
func (d *decoder) pairs(n *yaml.Node, what string, each func(key, value *yaml.Node)) bool {
	m := d.enter(n)
	if m == nil {
		return false
	}
	if m.Kind != yaml.MappingNode {
		d.fail(n, "%s: want a mapping, got %s", what, kindOf(m))
		return false
	}
	seen := map[string]*yaml.Node{}
	d.own(m, seen, each)
	for _, merged := range d.merges(m, nil) {
		d.own(merged, seen, each)
	}
	return true
}

// own calls each for the keys that stand in m itself and were not seen before.
func (d *decoder) own(m *yaml.Node, seen map[string]*yaml.Node, each func(key, value *yaml.Node)) {
	here := map[string]*yaml.Node{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key := d.enter(m.Content[i])
		if key == nil {
			return
		}
		if key.Kind != yaml.ScalarNode {
			d.fail(m.Content[i], "want a name as key, got %s", kindOf(key))
			continue
		}
		if first, ok := here[key.Value]; ok {
			d.fail(m.Content[i], "key %s is there twice: the first is on line %d", quote(key.Value), first.Line)
			continue
		}
		here[key.Value] = key
		if key.Value == mergeKey || seen[key.Value] != nil {
			continue
		}
		seen[key.Value] = key
		each(m.Content[i], m.Content[i+1])
	}
}

// merges returns the mappings that m merges in, the first with precedence, and theirs.
func (d *decoder) merges(m *yaml.Node, inside []*yaml.Node) (all []*yaml.Node) {
	for _, outer := range inside {
		if outer == m {
			return nil // it merges itself: nothing new
		}
	}
	inside = append(inside, m)
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value != mergeKey || m.Content[i].Kind != yaml.ScalarNode {
			continue
		}
		value := target(m.Content[i+1])
		from := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			from = value.Content
		}
		for _, f := range from {
			merged := d.enter(f)
			if merged == nil {
				return all
			}
			if merged.Kind != yaml.MappingNode {
				d.fail(f, "<<: want an alias of a mapping, such as *base, got %s", kindOf(merged))
				continue
			}
			all = append(append(all, merged), d.merges(merged, inside)...)
		}
	}
	return all
}

// list calls each for the items of a list, or for n itself if it is a single value.
func (d *decoder) list(n *yaml.Node, what string, each func(*yaml.Node)) {
	l := d.enter(n)
	if l == nil {
		return
	}
	if l.Kind != yaml.SequenceNode {
		each(n)
		return
	}
	if len(l.Content) == 0 {
		d.fail(n, "%s: the list is empty: write an item, or leave the key out", what)
	}
	for _, item := range l.Content {
		if isNull(target(item)) {
			d.fail(item, "%s: an item without a value", what)
			continue
		}
		each(item)
	}
}

// text reads any single value as it is written.
func (d *decoder) text(n *yaml.Node, what string) (string, bool) {
	s := d.enter(n)
	if s == nil {
		return "", false
	}
	if s.Kind != yaml.ScalarNode || isNull(s) {
		d.fail(n, "%s: want a text, got %s", what, kindOf(s))
		return "", false
	}
	return s.Value, true
}

// yes reads true or false.
func (d *decoder) yes(n *yaml.Node, what string, into *bool) {
	s := d.enter(n)
	if s == nil {
		return
	}
	if s.Kind != yaml.ScalarNode || s.Tag != "!!bool" {
		d.fail(n, "%s: want true or false, got %s", what, kindOf(s))
		return
	}
	*into = s.Value == "true" || s.Value == "True" || s.Value == "TRUE"
}

// number reads a whole number within a range.
func (d *decoder) number(n *yaml.Node, what string, low, high uint64, into *uint64) bool {
	s := d.enter(n)
	if s == nil {
		return false
	}
	value, err := strconv.ParseUint(s.Value, 10, 64)
	if s.Kind != yaml.ScalarNode || err != nil || value < low || value > high {
		d.fail(n, "%s: want a whole number from %d to %d, got %s", what, low, high, bare(s))
		return false
	}
	*into = value
	return true
}

// bare is kindOf with numbers as they are written.
func bare(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float") && len(n.Value) < 40 {
		return n.Value
	}
	return kindOf(n)
}

// duration reads a time such as 10s within a range.
func (d *decoder) duration(n *yaml.Node, what string, low, high time.Duration, into *time.Duration) {
	s := d.enter(n)
	if s == nil {
		return
	}
	value, err := time.ParseDuration(s.Value)
	if s.Kind != yaml.ScalarNode || err != nil {
		d.fail(n, "%s: want a time with its unit, such as 500ms, 10s or 2m, got %s", what, bare(s))
		return
	}
	if value < low || value > high {
		d.fail(n, "%s: want %v to %v, got %v", what, low, high, value)
		return
	}
	*into = value
}

// bytes reads a size such as 64KiB within a range.
func (d *decoder) bytes(n *yaml.Node, what string, low, high uint64, into *int) {
	s := d.enter(n)
	if s == nil {
		return
	}
	value, err := humanize.ParseBytes(s.Value)
	if s.Kind != yaml.ScalarNode || err != nil || value < low || value > high {
		d.fail(n, "%s: want %s to %s, got %s", what, humanize.IBytes(low), humanize.IBytes(high), bare(s))
		return
	}
	*into = int(value)
}

// integer is number for an int.
func (d *decoder) integer(n *yaml.Node, what string, low, high int, into *int) {
	var value uint64
	if d.number(n, what, uint64(low), uint64(high), &value) {
		*into = int(value)
	}
}

// choice reads one of a few words.
func choice[T ~string](d *decoder, n *yaml.Node, what string, all []T, into *T) {
	s, ok := d.text(n, what)
	if !ok {
		return
	}
	words := make([]string, len(all))
	for i, word := range all {
		if words[i] = string(word); words[i] == s {
			*into = word
			return
		}
	}
	d.fail(n, "unknown %s %s%s", what, quote(s), didYouMean(s, words))
}
