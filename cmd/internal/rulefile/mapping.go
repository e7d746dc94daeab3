package rulefile

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// mergeKey is the key with which a mapping in YAML includes other mappings: <<: *anchor.
const mergeKey = "<<"

// pairs calls the function each once for every key of a mapping. Keys of merged mappings come last. If the mapping
// itself has the key, the merged one is left out.
func (d *decoder) pairs(n *yaml.Node, what string, each func(key, value *yaml.Node)) bool {
	m := d.enter(n)
	if m == nil {
		return false
	}
	if m.Kind != yaml.MappingNode {
		d.Fail(n, "%s: want a mapping, got %s", what, yamlfile.KindOf(m))
		return false
	}
	seen := map[string]*yaml.Node{}
	d.own(m, seen, each)
	for _, merged := range d.merges(m, nil) {
		d.own(merged, seen, each)
	}
	return true
}

// filled is like pairs, but refuses an empty mapping.
func (d *decoder) filled(n *yaml.Node, what string, each func(key, value *yaml.Node)) {
	empty := true
	if d.pairs(n, what, func(key, value *yaml.Node) {
		empty = false
		each(key, value)
	}) && empty {
		d.Fail(n, "%s: the mapping is empty: want at least one name with its value", what)
	}
}

// The method own calls the function each for the keys of the mapping m that are not in seen. It does not include keys
// of mappings that m merges.
func (d *decoder) own(m *yaml.Node, seen map[string]*yaml.Node, each func(key, value *yaml.Node)) {
	here := map[string]*yaml.Node{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key := d.enter(m.Content[i])
		if key == nil {
			return
		}
		if key.Kind != yaml.ScalarNode {
			d.Fail(m.Content[i], "want a name as key, got %s", yamlfile.KindOf(key))
			continue
		}
		if first, ok := here[key.Value]; ok {
			d.Fail(m.Content[i], "key %s occurs twice: the first is on line %d", yamlfile.Quote(key.Value), first.Line)
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

// merges returns the mappings that m merges, and the mappings that these merge, and so on. If several have the same
// key, the first mapping counts.
func (d *decoder) merges(m *yaml.Node, inside []*yaml.Node) (all []*yaml.Node) {
	if slices.Contains(inside, m) {
		return nil // m merges itself, which adds nothing
	}
	inside = append(inside, m)
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value != mergeKey || m.Content[i].Kind != yaml.ScalarNode {
			continue
		}
		value := yamlfile.Target(m.Content[i+1])
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
				d.Fail(f, "<<: want an alias of a mapping, such as *base, got %s", yamlfile.KindOf(merged))
				continue
			}
			all = append(append(all, merged), d.merges(merged, inside)...)
		}
	}
	return all
}

// list calls the function each for the items of a list. A single value is a list with one item.
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
		d.Fail(n, "%s: the list is empty: write an item, or leave the key out", what)
	}
	for _, item := range l.Content {
		if yamlfile.IsNull(yamlfile.Target(item)) {
			d.Fail(item, "%s: an item without a value", what)
			continue
		}
		each(item)
	}
}

// valueOf returns the value of a key of the mapping n. If there is no such key, it returns n.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if m := yamlfile.Target(n); m.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if m.Content[i].Value == key {
				return m.Content[i+1]
			}
		}
	}
	return n
}
