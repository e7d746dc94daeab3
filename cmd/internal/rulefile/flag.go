package rulefile

import (
	"errors"
	"net/netip"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The functions below parse values of flags. They accept what a rule file accepts, and return the same errors without
// line and column.

// ParseKey parses a key.
func ParseKey(text string) (Key, error) { return value(text, "key", list(keyPart, checkUnique)) }

// ParseAddress checks an address to listen on, and returns it unchanged.
func ParseAddress(text string) (string, error) { return value(text, "address", address) }

// ParseUpstream parses the URL of an upstream.
func ParseUpstream(text string) (*Upstream, error) {
	return value(text, "upstream", optional(upstreams))
}

// ParseAdmin parses the address of an admin listener, which must be a loopback address.
func ParseAdmin(text string) (*Admin, error) {
	return value(text, "admin", optional(mapping((*Admin).section)))
}

// ParseProxies parses an address or a range of addresses.
func ParseProxies(text string) ([]netip.Prefix, error) {
	return value(text, "trusted_proxies", list(prefix, nil))
}

func value[V any](text, keyName string, k kind[V]) (v V, err error) {
	d := &decoder{}
	k.read(d, parseNode(text), keyName, &v)
	if len(d.Errors) == 0 {
		return v, nil
	}
	lines := make([]string, len(d.Errors))
	for i, e := range d.Errors {
		lines[i] = e.Message
	}
	var zero V
	return zero, errors.New(strings.Join(lines, "; "))
}

// parseNode returns the node of a text: a single value, or a list of values in brackets.
func parseNode(text string) *yaml.Node {
	if items, isList := strings.CutPrefix(text, "["); isList && strings.HasSuffix(items, "]") {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range strings.Split(strings.TrimSuffix(items, "]"), ", ") {
			list.Content = append(list.Content, parseNode(item))
		}
		return list
	}
	tag := "!!str"
	if text == "true" || text == "false" {
		tag = "!!bool"
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}
