package rulefile

import (
	"fmt"
	"net/netip"

	"github.com/dustin/go-humanize/english"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/limits/spec"
)

func (c *ClientIP) section() section {
	return section{name: "client_ip", entries: []entry{
		{
			name: "from", schema: func() schema { return pattern("", "^(x-forwarded-for|forwarded|socket|header:.+)$") },
			help: "`x-forwarded-for`, `forwarded` (RFC 7239), `header:NAME` or `socket`. A header is read from the " +
				"right, and only in requests from `trusted_proxies`",
			defaultNote: "`x-forwarded-for` with `trusted_proxies`, otherwise `socket`",
			fill:        func() {}, read: func(d *decoder, n *yaml.Node, keyName string) { c.readFrom(d, n, keyName) },
		},
		newEntry("ipv4_prefix", integer[int](1, 32), &c.IPv4Prefix, "32", "how many bits of an IPv4 address count"),
		newEntry("ipv6_prefix", integer[int](1, 128), &c.IPv6Prefix, fmt.Sprint(spec.IPv6Prefix), "how many bits of an IPv6 address count"),
	}}
}

func (c *ClientIP) readFrom(d *decoder, n *yaml.Node, keyName string) {
	s, ok := d.text(n, keyName)
	if !ok {
		return
	}
	switch From(s) {
	case FromSocket, FromXForwardedFor, FromForwarded:
		c.From = From(s)
		return
	}
	if name, ok := d.headerReference(n, s); ok {
		c.From, c.Header = FromHeader, name
	} else if name == "" {
		d.Fail(n, "unknown %s %s%s", keyName, yamlfile.Quote(s), didYouMean(s, []string{
			string(FromXForwardedFor), string(FromForwarded), "header:NAME", string(FromSocket)}))
	}
}

// check sets the default for the source of client addresses, which depends on whether the file trusts a proxy. It
// refuses settings that do not fit the source.
func (c *ClientIP) check(d *decoder, n *yaml.Node, hasTrustedProxies bool) {
	switch {
	case c.From == "" && hasTrustedProxies:
		c.From = FromXForwardedFor
	case c.From == "":
		c.From = FromSocket
	case c.From != FromSocket && !hasTrustedProxies:
		d.Fail(n, "client_ip: from %s needs trusted_proxies: anyone can send a header, so only theirs is trusted", c.From)
	}
}

func (c *ClientIP) describe(proxies int) string {
	source := "the connection's address"
	if c.From != FromSocket {
		header := string(c.From)
		if c.From == FromHeader {
			header = "the header " + c.Header
		}
		source = fmt.Sprintf("%s of %d trusted %s, otherwise %s", header, proxies,
			english.PluralWord(proxies, "proxy", ""), source)
	}
	if c.IPv4Prefix < 32 {
		source += fmt.Sprintf("; IPv4 by /%d", c.IPv4Prefix)
	}
	return source + fmt.Sprintf("; IPv6 by /%d", c.IPv6Prefix)
}

func (c *ClientIP) header() string {
	switch c.From {
	case FromForwarded:
		return "Forwarded"
	case FromHeader:
		return c.Header
	case FromXForwardedFor, FromSocket:
	}
	return "X-Forwarded-For"
}

var prefix = scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) netip.Prefix {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		addr, addrErr := netip.ParseAddr(s)
		if addrErr != nil || addr.Zone() != "" {
			d.Fail(n, "%s: %s: want an address or a range of them, such as 10.0.0.0/8 or ::1", keyName, yamlfile.Quote(s))
			return p
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if addr := p.Addr(); addr.Is4In6() {
		if p.Bits() < 96 {
			d.Fail(n, "%s: %s: write ranges of IPv4 addresses in IPv4 notation, such as 10.0.0.0/8", keyName, yamlfile.Quote(s))
			return p
		}
		p = netip.PrefixFrom(addr.Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		d.Fail(n, "%s: %s has bits after the prefix: did you mean %q?", keyName, yamlfile.Quote(s), p.Masked())
	}
	return p
})
