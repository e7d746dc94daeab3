package rulefile

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/httplimit/reading"
)

func (c *Decide) section() section {
	return section{
		name: "decide", shorthand: "address", entries: []entry{
			addressEntry(&c.Address, "127.0.0.1:8090"), modeEntry(&c.Mode), reusePortEntry(&c.ReusePort),
		},
		check: func(d *decoder, _ *yaml.Node, nodes map[string]*yaml.Node) { d.checkAddress(nodes, c.Listener()) },
	}
}

func (c *Decide) describe() string {
	if c == nil {
		return ""
	}
	return c.Address + textIf(c.ReusePort, reusePortText) + ", for other proxies"
}

// checkDecide refuses settings that would treat all clients as the same client.
func (d *decoder) checkDecide(f *File, n *yaml.Node) {
	usesAddress := slices.ContainsFunc(f.Rules,
		func(r Rule) bool { return r.Key.Uses(SourceIP) || r.Match.UsesClient() }) ||
		slices.ContainsFunc(f.Exempt, func(m reading.Match) bool { return m.UsesClient() })
	if f.Decide != nil && f.ClientIP.From == FromSocket && usesAddress {
		d.Fail(n, "decide: needs trusted_proxies with the proxy that asks: otherwise all requests have its address")
	}
}
