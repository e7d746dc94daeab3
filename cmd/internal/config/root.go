package config

import (
	"net/netip"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// MaxRules is the most rules of a file. A request may match all of them, and so many limits
// can be asked at once.
const MaxRules = 64

// The longest that a timeout, or the jitter of an answer, may be: what is longer is a mistake
// in the unit.
const longest = 24 * time.Hour

// root reads the whole file.
func (d *decoder) root(n *yaml.Node, f *File) {
	var tests *yaml.Node
	seen := d.mapping(n, "the file",
		field{"listen", func(n *yaml.Node) { d.listeners(n, f) }},
		field{"admin", func(n *yaml.Node) { f.Admin = d.admin(n) }},
		field{"decide", func(n *yaml.Node) { f.Decide = d.decide(n) }},
		field{"redis", func(n *yaml.Node) { f.Redis = d.redis(n) }},
		field{"upstream", func(n *yaml.Node) { f.Upstream = d.upstream(n) }},
		field{"routes", func(n *yaml.Node) { d.routes(n, f) }},
		field{"trusted_proxies", func(n *yaml.Node) { d.trustedProxies(n, f) }},
		field{"client_ip", func(n *yaml.Node) { d.clientIP(n, f) }},
		choiceField(d, "ambiguous_paths", ambiguousPaths, &f.AmbiguousPaths),
		choiceField(d, "headers", headerStyles, &f.Headers),
		field{"response", func(n *yaml.Node) { d.response(n, &f.Response) }},
		field{"cors", func(n *yaml.Node) { f.CORS = d.cors(n) }},
		field{"server", func(n *yaml.Node) { d.server(n, &f.Server) }},
		field{"log", func(n *yaml.Node) { d.log(n, &f.Log) }},
		field{"exempt", func(n *yaml.Node) {
			d.list(n, "exempt", func(n *yaml.Node) { f.Exempt = append(f.Exempt, d.exception(n)) })
		}},
		field{"store", func(n *yaml.Node) { f.Store = d.store(n) }},
		field{"state", func(n *yaml.Node) { f.State = d.stateFolder(n) }},
		field{"rules", func(n *yaml.Node) { d.rules(n, f) }},
		later("tests", &tests),
		field{ownKeys, nil},
	)
	if seen == nil {
		return
	}
	if tests != nil {
		d.tests(tests, f)
	}
	if _, ok := seen["rules"]; !ok && !f.RedisAlone() {
		d.Fail(n, "no rules: want at least one under rules")
	}
	if len(f.Listen) == 0 && f.Decide == nil && (f.Redis == nil || seen["rules"] != nil) {
		f.Listen = []Listener{{Address: defaultAddress}}
	}
	if d.proxied != nil && len(f.TrustedProxies) == 0 {
		d.Fail(d.proxied, "proxy_protocol needs trusted_proxies: any client can send the header, so it is read only of those")
	}
	d.checkAdmin(f, seen["admin"])
	d.checkClientIP(f, seen["client_ip"])
	d.checkDecide(f, seen["decide"])
	d.checkInFlight(f)
	d.checkRedis(f, seen["redis"])
	d.checkStores(f)
	d.checkState(f, seen["state"])
}

var headerStyles = []Headers{HeadersIETF, HeadersLegacy, HeadersDraft06, HeadersBoth, HeadersNone}

var bodies = []Body{BodyProblem, BodyJSON}

func (d *decoder) response(n *yaml.Node, r *Response) {
	seen := d.mapping(n, "response", append([]field{
		choiceField(d, "body", bodies, &r.Body),
		{"retry_jitter", func(n *yaml.Node) {
			d.duration(n, "retry_jitter", 0, time.Hour, &r.RetryJitter)
			if r.RetryJitter%time.Second != 0 {
				d.Fail(n, "retry_jitter: want whole seconds, because Retry-After is, got %v", r.RetryJitter)
			}
		}},
	}, d.refusalFields(&r.Refusal)...)...)
	if seen != nil {
		d.checkRefusal(&r.Refusal, seen)
	}
}

func (d *decoder) server(n *yaml.Node, s *Server) {
	d.mapping(n, "server",
		d.durationField("read_header_timeout", time.Millisecond, longest, &s.ReadHeaderTimeout),
		d.durationField("read_timeout", 0, longest, &s.ReadTimeout),
		d.durationField("write_timeout", 0, longest, &s.WriteTimeout),
		d.durationField("idle_timeout", time.Millisecond, longest, &s.IdleTimeout),
		d.durationField("shutdown_timeout", 0, longest, &s.ShutdownTimeout),
		d.durationField("shutdown_delay", 0, longest, &s.ShutdownDelay),
		d.bytesField("max_header_bytes", 1<<10, 16<<20, &s.MaxHeaderBytes),
		d.integerField("max_connections", 0, 1<<30, &s.MaxConnections),
		d.integerField("max_connections_per_client", 0, 1<<30, &s.MaxConnectionsPerClient),
		d.durationField("send_timeout", 0, longest, &s.SendTimeout),
		d.integerField("max_waiting", 1, 1<<20, &s.MaxWaiting),
		d.bytesField("min_body_rate", 0, 1<<30, &s.MinBodyRate),
	)
}

func (d *decoder) trustedProxies(n *yaml.Node, f *File) {
	d.list(n, "trusted_proxies", func(n *yaml.Node) {
		if prefix, ok := d.prefix(n, "trusted_proxies"); ok {
			f.TrustedProxies = append(f.TrustedProxies, prefix)
		}
	})
}

// prefix reads an address, or a range of them.
func (d *decoder) prefix(n *yaml.Node, what string) (prefix netip.Prefix, ok bool) {
	s, ok := d.text(n, what)
	if !ok {
		return prefix, false
	}
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		addr, notAddr := netip.ParseAddr(s)
		if notAddr != nil || addr.Zone() != "" {
			d.Fail(n, "%s: %s: want an address or a range of them, such as 10.0.0.0/8 or ::1", what, yamlfile.Quote(s))
			return prefix, false
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if addr := prefix.Addr(); addr.Is4In6() {
		if prefix.Bits() < 96 {
			d.Fail(n, "%s: %s: write ranges of IPv4 addresses as such, for example 10.0.0.0/8", what, yamlfile.Quote(s))
			return prefix, false
		}
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	if prefix != prefix.Masked() {
		d.Fail(n, "%s: %s has bits behind the prefix: did you mean %q?", what, yamlfile.Quote(s), prefix.Masked())
		return prefix, false
	}
	return prefix, true
}

func (d *decoder) clientIP(n *yaml.Node, f *File) {
	c := &f.ClientIP
	d.mapping(n, "client_ip",
		field{"from", func(n *yaml.Node) { d.from(n, c) }},
		d.integerField("ipv4_prefix", 1, 32, &c.IPv4Prefix),
		d.integerField("ipv6_prefix", 1, 128, &c.IPv6Prefix),
	)
}

func (d *decoder) from(n *yaml.Node, c *ClientIP) {
	s, ok := d.text(n, "from")
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
		d.Fail(n, "unknown from %s%s", yamlfile.Quote(s), didYouMean(s, []string{
			string(FromXForwardedFor), string(FromForwarded), "header:NAME", string(FromSocket)}))
	}
}

// checkClientIP fills in where addresses come from: the default depends on whether a proxy is trusted.
func (d *decoder) checkClientIP(f *File, n *yaml.Node) {
	c := &f.ClientIP
	switch {
	case c.From == "" && len(f.TrustedProxies) > 0:
		c.From = FromXForwardedFor
	case c.From == "":
		c.From = FromSocket
	case c.From != FromSocket && len(f.TrustedProxies) == 0:
		d.Fail(n, "client_ip: from %s needs trusted_proxies: anybody can send a header, so it is believed only of "+
			"those", c.From)
	}
}
