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
	read   func(d *decoder, n *yaml.Node, what string, into *V)
	fill   func(into *V) // sets the value if the file has none; nil means the zero value
	schema func() schema
	span   string
}

// The method within returns a copy of the kind with another text for its range in docs/configuration.md.
func (k kind[V]) within(span string) kind[V] {
	k.span = span
	return k
}

// The function one describes a value that is a single text. The function parse makes the value from the text, or
// refuses the text.
func one[V any](s schema, parse func(d *decoder, n *yaml.Node, what, text string) V) kind[V] {
	return kind[V]{
		read: func(d *decoder, n *yaml.Node, what string, into *V) {
			if text, ok := d.text(n, what); ok {
				*into = parse(d, n, what, text)
			}
		},
		schema: func() schema { return s },
	}
}

// text returns any single value as it is written in the file.
func (d *decoder) text(n *yaml.Node, what string) (string, bool) {
	s := d.enter(n)
	if s == nil {
		return "", false
	}
	if s.Kind != yaml.ScalarNode || yamlfile.IsNull(s) {
		d.Fail(n, "%s: want a text, got %s", what, yamlfile.KindOf(s))
		return "", false
	}
	return s.Value, true
}

var text = one(textSchema, func(_ *decoder, _ *yaml.Node, _, text string) string { return text })

var yes = kind[bool]{
	read: func(d *decoder, n *yaml.Node, what string, into *bool) {
		s := d.enter(n)
		if s == nil {
			return
		}
		if s.Kind != yaml.ScalarNode || s.Tag != "!!bool" {
			d.Fail(n, "%s: want true or false, got %s", what, yamlfile.KindOf(s))
			return
		}
		*into = s.Value == "true" || s.Value == "True" || s.Value == "TRUE"
	},
	schema: func() schema { return schema{"type": "boolean"} },
}

// The function whole describes a whole number from low to high.
func whole[V int | uint64](low, high uint64) kind[V] {
	return kind[V]{
		read: func(d *decoder, n *yaml.Node, what string, into *V) {
			s := d.enter(n)
			if s == nil {
				return
			}
			value, err := strconv.ParseUint(s.Value, 10, 64)
			if s.Kind != yaml.ScalarNode || err != nil || value < low || value > high {
				d.Fail(n, "%s: want a whole number from %d to %d, got %s", what, low, high, bare(s))
				return
			}
			if len(s.Value) > 1 && s.Value[0] == '0' {
				d.Fail(n, "%s: %s begins with a zero, and could mean %d or an octal number: leave the zero out",
					what, yamlfile.Quote(s.Value), value)
				return
			}
			*into = V(value)
		},
		schema: func() schema { // a number may be in quotes, but then editors do not check its range
			return schema{"type": []string{"integer", "string"}, "minimum": low, "maximum": high, "pattern": "^(0|[1-9][0-9]*)$"}
		},
		span: fmt.Sprintf("%d to %d", low, high),
	}
}

// The function bare describes a node for an error message, as KindOf does. But it returns a number as it is written.
func bare(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float") && len(n.Value) < 40 {
		return n.Value
	}
	return yamlfile.KindOf(n)
}

// duration describes a time, such as 10s, within a range.
func duration(low, high time.Duration) kind[time.Duration] {
	return kind[time.Duration]{
		read: func(d *decoder, n *yaml.Node, what string, into *time.Duration) {
			s := d.enter(n)
			if s == nil {
				return
			}
			value, err := time.ParseDuration(s.Value)
			if s.Kind != yaml.ScalarNode || err != nil {
				d.Fail(n, "%s: want a time with its unit, such as 500ms, 10s or 2m, got %s", what, bare(s))
				return
			}
			if value < low || value > high {
				d.Fail(n, "%s: want %v to %v, got %v", what, low, high, value)
				return
			}
			*into = value
		},
		schema: func() schema { return ref("duration") },
		span:   short(low) + " to " + short(high),
	}
}

// The function short returns a duration without units that are zero.
func short(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// seconds describes a time of whole seconds up to high. The parameter because is the part of an error that says why
// only whole seconds are valid.
func seconds(high time.Duration, because string) kind[time.Duration] {
	k := duration(0, high)
	read := k.read
	k.read = func(d *decoder, n *yaml.Node, what string, into *time.Duration) {
		read(d, n, what, into)
		if *into%time.Second != 0 {
			d.Fail(n, "%s: want whole seconds%s, got %v", what, because, *into)
		}
	}
	k.span += ", whole seconds"
	return k
}

// size describes a number of bytes within a range. It can be written in units such as KiB.
func size(low, high uint64) kind[int] {
	return kind[int]{
		read: func(d *decoder, n *yaml.Node, what string, into *int) {
			s := d.enter(n)
			if s == nil {
				return
			}
			value, err := humanize.ParseBytes(s.Value)
			if s.Kind != yaml.ScalarNode || err != nil || value < low || value > high {
				d.Fail(n, "%s: want %s to %s, got %s", what, humanize.IBytes(low), humanize.IBytes(high), bare(s))
				return
			}
			if strings.ContainsAny(s.Value, ".,") {
				d.Fail(n, "%s: want a whole number, such as 1536 or 64KiB, got %s", what, bare(s))
				return
			}
			*into = int(value)
		},
		schema: func() schema {
			return anyOf(schema{"type": "integer", "minimum": low, "maximum": high}, pattern("A size: 64KiB", `^[0-9]+ *[A-Za-z]*$`))
		},
		span: shortSize(low) + " to " + shortSize(high),
	}
}

// shortSize returns a size as in a rule file.
func shortSize(bytes uint64) string {
	if bytes == 0 {
		return "0"
	}
	return strings.NewReplacer(".0 ", "", " ", "").Replace(humanize.IBytes(bytes))
}

// choice describes a value that is one of a few values. Each is written in a file as its String.
func choice[V fmt.Stringer](all ...V) kind[V] {
	words := make([]string, len(all))
	for i, v := range all {
		words[i] = v.String()
	}
	return chosen(words, all)
}

// The function words describes a value that is one of a few words.
func words[V ~string](all ...V) kind[V] {
	texts := make([]string, len(all))
	for i, word := range all {
		texts[i] = string(word)
	}
	return chosen(texts, all)
}

// The function either describes a Boolean that is written as one of two words.
func either(no, yes string) kind[bool] { return chosen([]string{no, yes}, []bool{false, true}) }

func chosen[V any](words []string, values []V) kind[V] {
	return one(schema{"enum": words}, func(d *decoder, n *yaml.Node, what, text string) (v V) {
		i := slices.Index(words, text)
		if i < 0 {
			d.Fail(n, "unknown %s %s%s", what, yamlfile.Quote(text), didYouMean(text, words))
			return v
		}
		return values[i]
	})
}

// list describes a list with at least one item. A single value is a list with one item. The function each, if it is not
// nil, gets the previous items and a new item, and may refuse the new item.
func list[V any](k kind[V], each func(d *decoder, n *yaml.Node, what string, before []V, v V)) kind[[]V] {
	return kind[[]V]{
		read: func(d *decoder, n *yaml.Node, what string, into *[]V) {
			*into = nil
			d.list(n, what, func(n *yaml.Node) {
				var v V
				if k.fill != nil {
					k.fill(&v)
				}
				before := len(d.Errors)
				k.read(d, n, what, &v)
				if each != nil && len(d.Errors) == before {
					each(d, n, what, *into, v)
				}
				*into = append(*into, v)
			})
		},
		schema: func() schema { return many(k.schema()) },
		span:   k.span,
	}
}

// mapped describes a mapping with at least one key. The keys can be any names, and k describes the values.
func mapped[I, V any](k kind[I], read func(d *decoder, n *yaml.Node, what string, into *V)) kind[V] {
	return kind[V]{read: read, schema: func() schema {
		return schema{"type": "object", "additionalProperties": k.schema(), "minProperties": 1}
	}}
}

// optional describes a value that may be missing. A section with mistakes is not missing.
func optional[V any](k kind[V]) kind[*V] {
	return kind[*V]{
		read: func(d *decoder, n *yaml.Node, what string, into **V) {
			v, before := new(V), len(d.Errors)
			if k.read(d, n, what, v); len(d.Errors) == before || k.fill != nil {
				*into = v
			}
		},
		schema: k.schema,
		span:   k.span,
	}
}

// mapping describes a section of a file that sets the fields of a struct. The function of returns the section.
func mapping[T any](of func(*T) section) kind[T] {
	return kind[T]{
		read: func(d *decoder, n *yaml.Node, _ string, into *T) {
			s := of(into)
			s.read(d, n)
		},
		fill: func(into *T) {
			s := of(into)
			s.fill()
		},
		schema: func() schema {
			s := of(new(T))
			return s.schema()
		},
	}
}
