package rulefile

import (
	"io/fs"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/internal/unixsocket"
)

func (l *Listener) section() section {
	return section{
		name: "listen", shorthand: "address", entries: []entry{
			addressEntry(&l.Address, "127.0.0.1:8080"),
			modeEntry(&l.Mode),
			newEntry("h2c", boolean, &l.H2C, "", "HTTP/2 without TLS, in addition to HTTP/1.1").withRange("not with `tls`"),
			tlsEntry(&l.TLS),
			newEntry("proxy_protocol", boolean, &l.ProxyProtocol, "",
				"a connection from one of the `trusted_proxies` must start with a header of the PROXY protocol, "+
					"version 1 or 2, whose address is the client. Any other peer is its own client, and must not send "+
					"the header").withRange("with `trusted_proxies`"),
			reusePortEntry(&l.ReusePort),
		},
		check: func(d *decoder, _ *yaml.Node, nodes map[string]*yaml.Node) {
			if l.ProxyProtocol {
				d.proxyProtocolNode = nodes["proxy_protocol"]
			}
			if l.TLS != nil && l.H2C {
				d.Fail(nodes["h2c"], "h2c: a listener with tls speaks HTTP/2 anyway, and h2c is HTTP/2 without tls: leave "+
					"one of the two out")
			}
			d.checkAddress(nodes, *l)
		},
	}
}

// checkAddressFree refuses a listener if an earlier listener has the same address.
func checkAddressFree(d *decoder, n *yaml.Node, _ string, before []Listener, l Listener) {
	for _, other := range before {
		if overlap(l.Address, other.Address) {
			d.Fail(valueOf(n, "address"), "listen: %s is taken by the listener at %s", l.Address, other.Address)
		}
	}
}

func (a *Admin) section() section {
	return section{
		name: "admin", shorthand: "address", entries: []entry{
			addressEntry(&a.Address, "127.0.0.1:9090").withRange("loopback, unless there is `allow_remote`"),
			modeEntry(&a.Mode),
			newEntry("allow_remote", boolean, &a.AllowRemote, "", "other machines may reach the address"),
			newEntry("pprof", boolean, &a.Pprof, "", "serve profiles of the program"),
			newEntry("keys", words(admin.AllKeys...), &a.Keys, string(admin.KeysHashed),
				"how the keys of limits are shown: `hashed`, `full` or `off`"),
			newEntry("hosts", list(adminHost, nil), &a.Hosts, "",
				"names that the Host header of a request to the live page or `/metrics` may have, besides "+
					"localhost and addresses: the name of a proxy in front, such as `weir.example.com`, or the "+
					"service name that Prometheus scrapes. Any other name is refused, because another site could "+
					"point its own name at this address"),
			newEntry("token_file", tokenFile, &a.TokenFile, "",
				"a file with a token on each line, `TOKEN` or `NAME:TOKEN`, relative to the rule file. With it, "+
					"everything except `/healthz` and `/readyz` requires a token, as a bearer token or as a "+
					"browser's password. The file is read again when it changes").
				withDefaultText("none: everyone who reaches the listener may do everything").withRange("1 to 16 tokens of 16 characters or more, 64KiB"),
			newEntry("read_token_file", tokenFile, &a.ReadTokenFile, "", "the same, for tokens that only allow reading").withRange("with `token_file`"),
		},
		check: func(d *decoder, _ *yaml.Node, nodes map[string]*yaml.Node) {
			if !a.AllowRemote && isRemote(a.Address) {
				d.Fail(nodes["address"], "admin: %s can be reached from other machines: use 127.0.0.1, or write allow_remote: true", a.Address)
			}
			d.checkAddress(nodes, Listener{Address: a.Address})
			if d.tokensNode = nodes["token_file"]; a.ReadTokenFile != "" && a.TokenFile == "" {
				d.Fail(nodes["read_token_file"], "read_token_file: it needs a token_file with the tokens that may do more")
			}
		},
	}
}

var tokenFile = scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if s == "" {
		d.Fail(n, "%s: want the name of a file with a token on each line", keyName)
		return ""
	}
	return d.resolvePath(s)
})

// IsRemote reports whether other machines can reach the listener.
func (a *Admin) IsRemote() bool { return isRemote(a.Address) }

// Access reads the token files. It returns nil if there are none.
func (a *Admin) Access() (*admin.Access, error) {
	if a.TokenFile == "" {
		return nil, nil
	}
	return admin.NewAccess(a.TokenFile, a.ReadTokenFile)
}

func (d *decoder) tryTokens(f *File) {
	if d.tokensNode == nil || f.Admin == nil {
		return
	}
	if _, err := f.Admin.Access(); err != nil {
		d.Fail(d.tokensNode, "admin: %v", err)
	}
}

func (a *Admin) describe() string {
	if a == nil {
		return ""
	}
	return a.Address + ", keys " + string(a.Keys) + textIf(a.Pprof, ", pprof") +
		textIf(a.TokenFile != "", ", with tokens")
}

// adminHost describes a name in the Host header of requests to the page. It refuses a name such as *.example.com,
// because some of the names that it matches could belong to someone else.
var adminHost = scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) string {
	name := d.host(n, "host", s)
	if strings.HasPrefix(name, "*.") {
		d.Fail(n, "%s: %s: want one name, such as weir.example.com", keyName, yamlfile.Quote(name))
	}
	return name
})

func (t *TLS) section() section {
	file := scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) string {
		if s == "" {
			d.Fail(n, "%s: want the name of a PEM file", keyName)
			return ""
		}
		return d.resolvePath(s)
	})
	const hint = "want the names of two PEM files, cert and key"
	return section{
		name: "tls", help: "Two PEM files", entries: []entry{
			newEntry("cert", file, &t.CertFile, "", "the file of the certificate, relative to the rule file").required(hint),
			newEntry("key", file, &t.KeyFile, "", "the file of its private key").required(hint),
		},
		check: func(d *decoder, n *yaml.Node, _ map[string]*yaml.Node) {
			if t.CertFile != "" && t.KeyFile != "" {
				d.certificates = append(d.certificates, certificate{n, t})
			}
		},
	}
}

func addressEntry(dst *string, example string) entry {
	return newEntry("address", address, dst, "",
		"`host:port`, or `unix:/path` for a Unix socket, whose peers count as 127.0.0.1. Without a host, all "+
			"addresses of the machine. Port 0 takes a free port").required("write for example address: " +
		"" + example).withRange("port 0 to 65535; a path of 100 bytes")
}

func modeEntry(dst *fs.FileMode) entry {
	return newEntry("mode", mode, dst, "", "the mode of a Unix socket's file, in octal digits").withDefaultText("`660`").withRange("writable for the owner")
}

func tlsEntry(dst **TLS) entry {
	return newEntry("tls", optional(mapping((*TLS).section)), dst, "", "`cert` and `key`, two PEM files")
}

func reusePortEntry(dst *bool) entry {
	return newEntry("reuse_port", boolean, dst, "",
		"other processes of the same user may also listen on the port, and the kernel distributes new connections "+
			"among them (SO_REUSEPORT): see [operations.md](operations.md#several-processes-on-one-port). A reload "+
			"cannot change it while the port is open").withRange("Linux; a port that is not 0")
}

// checkAddress refuses keys that a listener cannot have with its kind of address.
func (d *decoder) checkAddress(nodes map[string]*yaml.Node, l Listener) {
	if l.Address == "" {
		return
	}
	if node := nodes["mode"]; node != nil && !isSocket(l.Address) {
		d.Fail(node, "mode: %s is not a Unix socket (unix:/path) and has no mode: leave it out", l.Address)
	}
	if !l.ReusePort {
		return
	}
	if node := nodes["reuse_port"]; isSocket(l.Address) {
		d.Fail(node, "reuse_port: %s is a Unix socket and has no port: leave it out", l.Address)
	} else if _, port, err := net.SplitHostPort(l.Address); err == nil && portNumber(port) == 0 {
		d.Fail(node, "reuse_port: %s is a different port in each process: write the port", l.Address)
	}
}

// checkAddressesFree refuses a listener that is not for clients if another listener has the same address.
func (d *decoder) checkAddressesFree(f *File, nodes map[string]*yaml.Node) {
	type listenAddress struct{ owner, address string }
	var addresses []listenAddress
	for _, l := range f.Listen {
		addresses = append(addresses, listenAddress{"a public listener's", l.Address})
	}
	check := func(key, owner, address string) {
		for _, p := range addresses {
			if overlap(address, p.address) {
				d.Fail(nodes[key], "%s: %s is %s, %s: choose another port", key, address, p.owner, p.address)
			}
		}
		addresses = append(addresses, listenAddress{owner, address})
	}
	if f.Admin != nil {
		check("admin", "the admin listener's", f.Admin.Address)
	}
	if f.Decide != nil {
		check("decide", "the listener's for decisions", f.Decide.Address)
	}
	if f.Redis != nil {
		check("redis", "", f.Redis.Address)
	}
}

// address describes an address to listen on: unix:/path, or host:port, in which the host may be missing.
var address = withReference("address", scalar(nil, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if path, isSocket := unixsocket.Path(s); isSocket {
		d.socketPath(n, keyName, path)
		return s
	}
	const example = "write for example 127.0.0.1:8080, or :8080 for all addresses of this machine"
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		d.Fail(n, "%s: %s: want host:port; %s", keyName, yamlfile.Quote(s), example)
		return ""
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		d.Fail(n, "%s: %s: the port is %s, want 0 to 65535; %s", keyName, yamlfile.Quote(s), yamlfile.Quote(port), example)
		return ""
	}
	return s
}))

// overlap reports whether weir cannot listen on both addresses, which must be valid. They overlap if they have the same
// port, and the hosts are equal or one host means all hosts.
func overlap(a, b string) bool {
	if isSocket(a) {
		return a == b
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portNumber(portA) != portNumber(portB) || portNumber(portA) == 0 {
		return false
	}
	return hostA == hostB || isAllHosts(hostA) || isAllHosts(hostB)
}

func portNumber(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 16) // the port was checked before
	return n
}

func isAllHosts(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// isRemote reports whether other machines can reach an address, which must be valid.
func isRemote(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && !isSocket(address) && !isLoopback(host)
}
