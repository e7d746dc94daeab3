package config

import (
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// text reads any single value as it is written.
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

// yes reads true or false.
func (d *decoder) yes(n *yaml.Node, what string, into *bool) {
	s := d.enter(n)
	if s == nil {
		return
	}
	if s.Kind != yaml.ScalarNode || s.Tag != "!!bool" {
		d.Fail(n, "%s: want true or false, got %s", what, yamlfile.KindOf(s))
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
		d.Fail(n, "%s: want a whole number from %d to %d, got %s", what, low, high, bare(s))
		return false
	}
	if len(s.Value) > 1 && s.Value[0] == '0' {
		d.Fail(n, "%s: %s begins with a zero, which is read as %d or, as octal, as another number: leave the zero out",
			what, yamlfile.Quote(s.Value), value)
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
	return yamlfile.KindOf(n)
}

// duration reads a time such as 10s within a range.
func (d *decoder) duration(n *yaml.Node, what string, low, high time.Duration, into *time.Duration) {
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
}

// bytes reads a size such as 64KiB within a range.
func (d *decoder) bytes(n *yaml.Node, what string, low, high uint64, into *int) {
	s := d.enter(n)
	if s == nil {
		return
	}
	value, err := humanize.ParseBytes(s.Value)
	if s.Kind != yaml.ScalarNode || err != nil || value < low || value > high {
		d.Fail(n, "%s: want %s to %s, got %s", what, humanize.IBytes(low), humanize.IBytes(high), bare(s))
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
	d.Fail(n, "unknown %s %s%s", what, yamlfile.Quote(s), didYouMean(s, words))
}
