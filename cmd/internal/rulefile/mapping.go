package rulefile

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// mergeKey is the key with which a mapping in YAML includes other mappings: <<: *anchor.
const mergeKey = "<<"

// pairs calls the function visit once for every key of a mapping, with the nodes of the key and its value. Keys of
// merged mappings come last. If the mapping itself has such a key, its own value counts. It returns false if n is not a
// readable mapping.
func (d *decoder) pairs(n *yaml.Node, keyName string, visit func(key, value *yaml.Node)) bool {
	m := d.resolveNode(n)
	if m == nil {
		return false
	}
	if m.Kind != yaml.MappingNode {
		d.Fail(n, "%s: want a mapping, got %s", keyName, yamlfile.KindOf(m))
		return false
	}
	seen := map[string]*yaml.Node{}
	d.ownPairs(m, seen, visit)
	for _, merged := range d.mergedMappings(m, nil) {
		d.ownPairs(merged, seen, visit)
	}
	return true
}

// nonEmptyPairs is like pairs, but refuses an empty mapping.
func (d *decoder) nonEmptyPairs(n *yaml.Node, keyName string, visit func(key, value *yaml.Node)) {
	isEmpty := true
	if d.pairs(n, keyName, func(key, value *yaml.Node) {
		isEmpty = false
		visit(key, value)
	}) && isEmpty {
		d.Fail(n, "%s: the mapping is empty: want at least one name with its value", keyName)
	}
}

// ownPairs calls the function visit for the keys of the mapping m that are not in seen, and adds them to seen. It
// leaves out the keys of mappings that m merges.
func (d *decoder) ownPairs(m *yaml.Node, seen map[string]*yaml.Node, visit func(key, value *yaml.Node)) {
	keys := map[string]*yaml.Node{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key := d.resolveNode(m.Content[i])
		if key == nil {
			return
		}
		if key.Kind != yaml.ScalarNode {
			d.Fail(m.Content[i], "want a name as key, got %s", yamlfile.KindOf(key))
			continue
		}
		if first, ok := keys[key.Value]; ok {
			d.Fail(m.Content[i], "key %s occurs twice: the first is on line %d", yamlfile.Quote(key.Value), first.Line)
			continue
		}
		keys[key.Value] = key
		if key.Value == mergeKey || seen[key.Value] != nil {
			continue
		}
		seen[key.Value] = key
		visit(m.Content[i], m.Content[i+1])
	}
}

// mergedMappings returns the mappings that m merges, and the mappings that these merge, and so on. If several have the
// same key, the first mapping counts. The parameter parents has the mappings from which m was reached.
func (d *decoder) mergedMappings(m *yaml.Node, parents []*yaml.Node) (mappings []*yaml.Node) {
	if slices.Contains(parents, m) {
		return nil // m merges itself, which adds nothing
	}
	parents = append(parents, m)
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value != mergeKey || m.Content[i].Kind != yaml.ScalarNode {
			continue
		}
		value := yamlfile.Target(m.Content[i+1])
		items := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			items = value.Content
		}
		for _, item := range items {
			merged := d.resolveNode(item)
			if merged == nil {
				return mappings
			}
			if merged.Kind != yaml.MappingNode {
				d.Fail(item, "<<: want an alias of a mapping, such as *base, got %s", yamlfile.KindOf(merged))
				continue
			}
			mappings = append(append(mappings, merged), d.mergedMappings(merged, parents)...)
		}
	}
	return mappings
}

// list calls the function visit for the items of a list. A single value is a list with one item.
func (d *decoder) list(n *yaml.Node, keyName string, visit func(*yaml.Node)) {
	l := d.resolveNode(n)
	if l == nil {
		return
	}
	if l.Kind != yaml.SequenceNode {
		visit(n)
		return
	}
	if len(l.Content) == 0 {
		d.Fail(n, "%s: the list is empty: write an item, or leave the key out", keyName)
	}
	for _, item := range l.Content {
		if yamlfile.IsNull(yamlfile.Target(item)) {
			d.Fail(item, "%s: an item without a value", keyName)
			continue
		}
		visit(item)
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
