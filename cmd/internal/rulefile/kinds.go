package rulefile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// A kind describes which values an entry can have: how they are read, their schema, and their text in
// docs/configuration.md.
type kind[V any] struct {
	read      func(d *decoder, n *yaml.Node, keyName string, dst *V)
	fill      func(dst *V) // sets the value if the file has none; nil means the zero value
	schema    func() schema
	rangeText string
}

// withRange returns a copy of the kind with another text for its range in docs/configuration.md.
func (k kind[V]) withRange(text string) kind[V] {
	k.rangeText = text
	return k
}

// scalar describes a value that is a single text. The function parse makes the value from the text, or refuses the
// text.
func scalar[V any](s schema, parse func(d *decoder, n *yaml.Node, keyName, text string) V) kind[V] {
	return kind[V]{
		read: func(d *decoder, n *yaml.Node, keyName string, dst *V) {
			if text, ok := d.text(n, keyName); ok {
				*dst = parse(d, n, keyName, text)
			}
		},
		schema: func() schema { return s },
	}
}

// text returns any single value as it is written in the file.
func (d *decoder) text(n *yaml.Node, keyName string) (string, bool) {
	s := d.resolveNode(n)
	if s == nil {
		return "", false
	}
	if s.Kind != yaml.ScalarNode || yamlfile.IsNull(s) {
		d.Fail(n, "%s: want a text, got %s", keyName, yamlfile.KindOf(s))
		return "", false
	}
	return s.Value, true
}

var text = scalar(textSchema, func(_ *decoder, _ *yaml.Node, _, text string) string { return text })

var boolean = kind[bool]{
	read: func(d *decoder, n *yaml.Node, keyName string, dst *bool) {
		s := d.resolveNode(n)
		if s == nil {
			return
		}
		if s.Kind != yaml.ScalarNode || s.Tag != "!!bool" {
			d.Fail(n, "%s: want true or false, got %s", keyName, yamlfile.KindOf(s))
			return
		}
		*dst = s.Value == "true" || s.Value == "True" || s.Value == "TRUE"
	},
	schema: func() schema { return schema{"type": "boolean"} },
}

// integer describes a whole number from low to high.
func integer[V int | uint64](low, high uint64) kind[V] {
	return kind[V]{
		read: func(d *decoder, n *yaml.Node, keyName string, dst *V) {
			s := d.resolveNode(n)
			if s == nil {
				return
			}
			value, err := strconv.ParseUint(s.Value, 10, 64)
			if s.Kind != yaml.ScalarNode || err != nil || value < low || value > high {
				d.Fail(n, "%s: want a whole number from %d to %d, got %s", keyName, low, high, describeNode(s))
				return
			}
			if len(s.Value) > 1 && s.Value[0] == '0' {
				d.Fail(n, "%s: %s begins with a zero, and could mean %d or an octal number: leave the zero out",
					keyName, yamlfile.Quote(s.Value), value)
				return
			}
			*dst = V(value)
		},
		schema: func() schema { // a number may be in quotes, but then editors do not check its range
			return schema{"type": []string{"integer", "string"}, "minimum": low, "maximum": high, "pattern": "^(0|[1-9][0-9]*)$"}
		},
		rangeText: fmt.Sprintf("%d to %d", low, high),
	}
}

// describeNode describes a node for an error message, as KindOf does. But it returns a number as it is written.
func describeNode(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float") && len(n.Value) < 40 {
		return n.Value
	}
	return yamlfile.KindOf(n)
}

// duration describes a time, such as 10s, within a range.
func duration(low, high time.Duration) kind[time.Duration] {
	return kind[time.Duration]{
		read: func(d *decoder, n *yaml.Node, keyName string, dst *time.Duration) {
			s := d.resolveNode(n)
			if s == nil {
				return
			}
			value, err := time.ParseDuration(s.Value)
			if s.Kind != yaml.ScalarNode || err != nil {
				d.Fail(n, "%s: want a time with its unit, such as 500ms, 10s or 2m, got %s", keyName, describeNode(s))
				return
			}
			if value < low || value > high {
				d.Fail(n, "%s: want %v to %v, got %v", keyName, low, high, value)
				return
			}
			*dst = value
		},
		schema:    func() schema { return ref("duration") },
		rangeText: shortDuration(low) + " to " + shortDuration(high),
	}
}

// shortDuration returns a duration as text, without units that are zero.
func shortDuration(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// seconds describes a time of whole seconds up to high. The parameter reason is the part of an error that says why
// only whole seconds are valid.
func seconds(high time.Duration, reason string) kind[time.Duration] {
	k := duration(0, high)
	read := k.read
	k.read = func(d *decoder, n *yaml.Node, keyName string, dst *time.Duration) {
		read(d, n, keyName, dst)
		if *dst%time.Second != 0 {
			d.Fail(n, "%s: want whole seconds%s, got %v", keyName, reason, *dst)
		}
	}
	k.rangeText += ", whole seconds"
	return k
}

// size describes a number of bytes within a range. It can be written in units such as KiB.
func size(low, high uint64) kind[int] {
	return kind[int]{
		read: func(d *decoder, n *yaml.Node, keyName string, dst *int) {
			s := d.resolveNode(n)
			if s == nil {
				return
			}
			value, err := humanize.ParseBytes(s.Value)
			if s.Kind != yaml.ScalarNode || err != nil || value < low || value > high {
				d.Fail(n, "%s: want %s to %s, got %s", keyName, humanize.IBytes(low), humanize.IBytes(high), describeNode(s))
				return
			}
			if strings.ContainsAny(s.Value, ".,") {
				d.Fail(n, "%s: want a whole number, such as 1536 or 64KiB, got %s", keyName, describeNode(s))
				return
			}
			*dst = int(value)
		},
		schema: func() schema {
			return anyOf(schema{"type": "integer", "minimum": low, "maximum": high}, pattern("A size: 64KiB", `^[0-9]+ *[A-Za-z]*$`))
		},
		rangeText: shortSize(low) + " to " + shortSize(high),
	}
}

// shortSize returns a size as in a rule file.
func shortSize(bytes uint64) string {
	if bytes == 0 {
		return "0"
	}
	return strings.NewReplacer(".0 ", "", " ", "").Replace(humanize.IBytes(bytes))
}

// choice describes one of a few values. A file has the String of the value.
func choice[V fmt.Stringer](values ...V) kind[V] {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = v.String()
	}
	return enum(words, values)
}

// The function words describes one of a few words.
func words[V ~string](words ...V) kind[V] {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return enum(texts, words)
}

// twoWords describes a Boolean that is written as one of two words.
func twoWords(falseWord, trueWord string) kind[bool] {
	return enum([]string{falseWord, trueWord}, []bool{false, true})
}

func enum[V any](words []string, values []V) kind[V] {
	return scalar(schema{"enum": words}, func(d *decoder, n *yaml.Node, keyName, text string) (v V) {
		i := slices.Index(words, text)
		if i < 0 {
			d.Fail(n, "unknown %s %s%s", keyName, yamlfile.Quote(text), didYouMean(text, words))
			return v
		}
		return values[i]
	})
}

// list describes a list with at least one item. A single value is a list with one item. The function check, if it is
// not nil, gets the previous items and a new item, and may refuse the new item.
func list[V any](k kind[V], check func(d *decoder, n *yaml.Node, keyName string, before []V, v V)) kind[[]V] {
	return kind[[]V]{
		read: func(d *decoder, n *yaml.Node, keyName string, dst *[]V) {
			*dst = nil
			d.list(n, keyName, func(n *yaml.Node) {
				var v V
				if k.fill != nil {
					k.fill(&v)
				}
				before := len(d.Errors)
				k.read(d, n, keyName, &v)
				if check != nil && len(d.Errors) == before {
					check(d, n, keyName, *dst, v)
				}
				*dst = append(*dst, v)
			})
		},
		schema:    func() schema { return oneOrMore(k.schema()) },
		rangeText: k.rangeText,
	}
}

// mapOf describes a mapping with at least one key. The keys can be any names, and k describes the values.
func mapOf[I, V any](k kind[I], read func(d *decoder, n *yaml.Node, keyName string, dst *V)) kind[V] {
	return kind[V]{read: read, schema: func() schema {
		return schema{"type": "object", "additionalProperties": k.schema(), "minProperties": 1}
	}}
}

// optional describes a value that may be missing. A section with mistakes is not missing.
func optional[V any](k kind[V]) kind[*V] {
	return kind[*V]{
		read: func(d *decoder, n *yaml.Node, keyName string, dst **V) {
			v, before := new(V), len(d.Errors)
			if k.read(d, n, keyName, v); len(d.Errors) == before || k.fill != nil {
				*dst = v
			}
		},
		schema:    k.schema,
		rangeText: k.rangeText,
	}
}

// mapping describes a mapping that sets the fields of a struct. The function sectionOf returns the section of the
// struct.
func mapping[T any](sectionOf func(*T) section) kind[T] {
	return kind[T]{
		read: func(d *decoder, n *yaml.Node, _ string, dst *T) {
			s := sectionOf(dst)
			s.read(d, n)
		},
		fill: func(dst *T) {
			s := sectionOf(dst)
			s.fill()
		},
		schema: func() schema {
			s := sectionOf(new(T))
			return s.schema()
		},
	}
}
