package config

import (
	"errors"
	"net/netip"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The functions here read single values as they are written in a file, for flags. They accept what
// a file does, and their errors say the same, without a place.

// ParseKey reads a key.
func ParseKey(text string) (Key, error) { return value(text, (*decoder).key) }

// ParseAddress reads an address to listen on, and returns it as it is.
func ParseAddress(text string) (string, error) {
	return value(text, func(d *decoder, n *yaml.Node) string { return d.address(n, "address") })
}

// ParseUpstream reads the URL of an upstream.
func ParseUpstream(text string) (*Upstream, error) { return value(text, (*decoder).upstream) }

// ParseAdmin reads the address of an admin listener, which is a loopback one.
func ParseAdmin(text string) (*Admin, error) {
	return value(text, (*decoder).admin)
}

// ParseProxies reads an address or a range of them.
func ParseProxies(text string) ([]netip.Prefix, error) {
	return value(text, func(d *decoder, n *yaml.Node) []netip.Prefix {
		f := &File{}
		d.trustedProxies(n, f)
		return f.TrustedProxies
	})
}

func value[T any](text string, read func(*decoder, *yaml.Node) T) (v T, err error) {
	d := &decoder{}
	v = read(d, scalar(text))
	if len(d.Errors) == 0 {
		return v, nil
	}
	lines := make([]string, len(d.Errors))
	for i, e := range d.Errors {
		lines[i] = e.Message
	}
	var none T
	return none, errors.New(strings.Join(lines, "; "))
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}
