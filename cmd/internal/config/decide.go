package config

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/httplimit/reading"
)

// decide reads an address, or a mapping with one.
func (d *decoder) decide(n *yaml.Node) *Decide {
	c := &Decide{}
	if yamlfile.Target(n).Kind != yaml.MappingNode {
		c.Address = d.address(n, "decide")
		return c
	}
	seen := d.mapping(n, "decide", d.addressField(&c.Address), modeField(d, &c.Mode), d.yesField("reuse_port", &c.ReusePort))
	if seen != nil && seen["address"] == nil {
		d.Fail(n, "decide: no address: write for example address: 127.0.0.1:8090")
	}
	d.checkMode(seen["mode"], c.Address)
	d.checkReusePort(seen["reuse_port"], c.Listener())
	return c
}

// checkDecide keeps decisions off the addresses that are others', and from being all one client's.
func (d *decoder) checkDecide(f *File, n *yaml.Node) {
	if f.Decide == nil {
		return
	}
	d.notPublic(f, n, "decide", f.Decide.Address)
	if f.Admin != nil && overlap(f.Decide.Address, f.Admin.Address) {
		d.Fail(n, "decide: %s is the admin listener's, %s: choose another port", f.Decide.Address, f.Admin.Address)
	}
	byAddress := slices.ContainsFunc(f.Rules,
		func(r Rule) bool { return r.Key.Uses(SourceIP) || r.Match.UsesClient() }) ||
		slices.ContainsFunc(f.Exempt, func(m reading.Match) bool { return m.UsesClient() })
	if f.ClientIP.From == FromSocket && byAddress {
		d.Fail(n, "decide: needs trusted_proxies, with the proxy that asks: else all requests are from its address")
	}
}
