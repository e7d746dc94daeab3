package config

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// A class is the set of values that a cidr or regex selects. The zero class is the empty set.
type class struct {
	key  string
	text string // as the operator sees it; "" for no class
	cidr netip.Prefix
	re   *regexp.Regexp
}

func classOf(d *Descriptor) class {
	c := class{key: d.Key, cidr: d.CIDR, re: d.Regex}
	switch {
	case d.CIDR.IsValid():
		c.text = "cidr:" + d.CIDR.String()
	case d.Regex != nil:
		c.text = "regex:" + strings.TrimSuffix(strings.TrimPrefix(d.Regex.String(), "^(?s:"), ")$")
	}
	return c
}

// contains reports whether a value is in the class. An IPv4 address may be written as IPv6.
func (c *class) contains(key, value string) bool {
	switch {
	case c.text == "" || c.key != key:
		return false
	case c.re != nil:
		return c.re.MatchString(value)
	}
	addr, err := netip.ParseAddr(value)
	return err == nil && c.cidr.Contains(addr.Unmap().WithZone(""))
}

// stat returns the class as part of a name in statistics. There, a dot would begin a new level.
func (c *class) stat() string {
	return statText(c.key, strings.ReplaceAll(c.text, ".", "_"))
}

// hasClass reports whether a descriptor of the node already has this class.
func (n *node) hasClass(c class) bool {
	return c.text != "" && slices.ContainsFunc(n.wildcards, func(w *node) bool {
		return w.class.key == c.key && w.class.text == c.text
	})
}

// checkClass reports keys that cannot be used together with a cidr or regex.
func (c *compiler) checkClass(d *Descriptor) {
	switch {
	case d.CIDR.IsValid() && d.Regex != nil:
		c.fail(d.pos, "cidr and regex of one descriptor: leave one of them out")
	case d.Value != "":
		c.fail(d.pos, "value '%s' next to a cidr or a regex: leave one of them out", d.Value)
	case strings.Contains(d.Key, "*"):
		c.fail(d.pos, "key '%s' has a '*', and its values have a cidr or a regex: leave one of them out", d.Key)
	}
}
