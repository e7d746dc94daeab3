package config

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
)

// Domains returns the number of domains.
func (c *Config) Domains() int { return len(c.domains) }

// Rules returns all rules, each at its Index. The slice must not be changed.
func (c *Config) Rules() []*Rule { return c.rules }

// HasDomain reports whether the domain exists.
func (c *Config) HasDomain(domain string) bool { return c.domains[domain] != nil }

// AllOrNothing reports whether the domain's documents set all_or_nothing.
func (c *Config) AllOrNothing(domain string) bool {
	d := c.domains[domain]
	return d != nil && d.allOrNothing
}

// Match returns the rules of a descriptor: one for each of its limits, or none. The caller must not change them. A rule
// applies only if its depth in the tree equals the number of entries. Match does not allocate.
//
// At each level, Match takes the first of these children that exists:
//   - the child named key_value
//   - in the order of the file, the first child whose cidr or regex matches the value, or whose name has a '*' and
//     matches key_value
//   - the child named by the key alone
func (c *Config) Match(domain string, descriptor *commonv3.RateLimitDescriptor) []*Rule {
	d := c.domains[domain]
	if d == nil {
		return nil
	}
	current := &d.node
	for _, entry := range descriptor.GetEntries() {
		if current = current.child(entry.GetKey(), entry.GetValue()); current == nil {
			return nil
		}
	}
	return current.rules
}

func (n *node) child(key, value string) *node {
	var buffer [128]byte
	name := append(buffer[:0], key...)
	name = append(name, '_')
	name = append(name, value...)
	if child := n.children[string(name)]; child != nil {
		return child
	}
	for _, wildcard := range n.wildcards {
		if wildcard.class.contains(key, value) || wildcard.pattern != nil && matchesPattern(name, wildcard.pattern) {
			return wildcard
		}
	}
	return n.children[key]
}

// matchesPattern reports whether name has the parts of a pattern in order, with any text between them. It only tries
// the first occurrence of each part, because a later occurrence leaves less text for the next parts.
func matchesPattern(name []byte, parts [][]byte) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(name) < len(first)+len(last) || !bytes.HasPrefix(name, first) || !bytes.HasSuffix(name, last) {
		return false
	}
	middle := name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := bytes.Index(middle, part)
		if i < 0 {
			return false
		}
		middle = middle[i+len(part):]
	}
	return true
}

// AppendKey appends the key of a descriptor's counter. The rule is nil if the descriptor carries its own limit (an
// override). Equal domains and entries give equal keys, except at a level with share_threshold: there, the pattern
// replaces the value. Each text follows its length, so different lists of entries have different keys.
func AppendKey(dst []byte, rule *Rule, domain string, descriptor *commonv3.RateLimitDescriptor) []byte {
	dst = appendText(dst, domain)
	for i, entry := range descriptor.GetEntries() {
		dst = appendText(dst, entry.GetKey())
		if rule != nil && rule.levels[i].sharedPattern != "" {
			dst = append(appendText(dst, rule.levels[i].sharedPattern), '*')
			continue
		}
		dst = append(appendText(dst, entry.GetValue()), '=')
	}
	return dst
}

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// StatOf returns the name under which a decision by the rule is counted. This is Stat, unless the name contains values
// of the request.
func (r *Rule) StatOf(descriptor *commonv3.RateLimitDescriptor) string {
	if !r.StatDepends() {
		return r.Stat
	}
	var b strings.Builder
	b.WriteString(separators.Replace(r.domain))
	for i, entry := range descriptor.GetEntries() {
		l := &r.levels[i]
		asInFile := l.sharedPattern != "" || !r.DetailedMetric && !l.valueToMetric // the level is named as in the file
		switch {
		case asInFile && l.statPattern != "":
			writeEntry(&b, entry.GetKey(), l.statPattern)
		case asInFile:
			b.WriteString("." + l.stat)
		default:
			writeEntry(&b, entry.GetKey(), entry.GetValue())
		}
	}
	b.WriteString(r.statSuffix)
	return b.String()
}

// StatDepends reports whether StatOf depends on the descriptor.
func (r *Rule) StatDepends() bool {
	return r.DetailedMetric || slices.ContainsFunc(r.levels, func(l level) bool { return l.valueToMetric || l.statPattern != "" })
}

// OverrideStat returns the name under which a decision by a request's own limit is counted.
func OverrideStat(domain string, descriptor *commonv3.RateLimitDescriptor) string {
	var b strings.Builder
	b.WriteString(separators.Replace(domain))
	for _, entry := range descriptor.GetEntries() {
		writeEntry(&b, entry.GetKey(), entry.GetValue())
	}
	return b.String()
}

func writeEntry(b *strings.Builder, key, value string) {
	b.WriteByte('.')
	b.WriteString(statText(key, value))
}

// statText returns an entry as part of a name in statistics. The separators of statsd, ":" and "|", and the dots of an
// address become "_".
func statText(key, value string) string {
	if _, err := netip.ParseAddr(value); err == nil {
		value = strings.ReplaceAll(value, ".", "_")
	} else if _, err := netip.ParsePrefix(value); err == nil {
		value = strings.ReplaceAll(value, ".", "_")
	}
	if value != "" {
		key += "_" + value
	}
	return separators.Replace(key)
}

var separators = strings.NewReplacer(":", "_", "|", "_")
