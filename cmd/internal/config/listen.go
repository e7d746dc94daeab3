package config

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/internal/unixsocket"
)

func (d *decoder) listeners(n *yaml.Node, f *File) {
	d.list(n, "listen", func(n *yaml.Node) {
		var l Listener
		at := n // of the address
		if yamlfile.Target(n).Kind == yaml.ScalarNode {
			l.Address = d.address(n, "listen")
		} else {
			at = d.listener(n, &l)
		}
		for _, other := range f.Listen {
			if l.Address != "" && overlap(l.Address, other.Address) {
				d.Fail(at, "listen: %s is taken by the listener at %s", l.Address, other.Address)
			}
		}
		f.Listen = append(f.Listen, l)
	})
}

func (d *decoder) listener(n *yaml.Node, l *Listener) (address *yaml.Node) {
	seen := d.mapping(n, "listen",
		d.addressField(&l.Address),
		modeField(d, &l.Mode),
		d.yesField("h2c", &l.H2C),
		field{"tls", func(n *yaml.Node) { l.TLS = d.tls(n) }},
		d.yesField("proxy_protocol", &l.ProxyProtocol),
		d.yesField("reuse_port", &l.ReusePort),
	)
	if seen == nil {
		return n
	}
	if l.ProxyProtocol {
		d.proxied = seen["proxy_protocol"]
	}
	if l.TLS != nil && l.H2C {
		d.Fail(seen["h2c"], "h2c: a listener with tls speaks HTTP/2 anyway, and h2c is HTTP/2 without tls: leave "+
			"one of the two out")
	}
	if seen["address"] == nil {
		d.Fail(n, "listen: no address: write for example address: 127.0.0.1:8080")
		return n
	}
	d.checkMode(seen["mode"], l.Address)
	d.checkReusePort(seen["reuse_port"], *l)
	return seen["address"]
}

func (d *decoder) tls(n *yaml.Node) *TLS {
	t := &TLS{}
	file := func(name string, into *string) field {
		return field{name, func(n *yaml.Node) {
			if s, ok := d.text(n, name); ok && s != "" {
				*into = d.beside(s)
			} else if ok {
				d.Fail(n, "%s: want the name of a PEM file", name)
			}
		}}
	}
	seen := d.mapping(n, "tls", file("cert", &t.CertFile), file("key", &t.KeyFile))
	if seen == nil {
		return nil
	}
	d.need(n, seen, "tls: no %s: want the names of two PEM files, cert and key", "cert", "key")
	if t.CertFile != "" && t.KeyFile != "" {
		d.certificates = append(d.certificates, certificate{n, t})
	}
	return t
}

// address reads host:port, of which the host may be missing, or unix:/path.
func (d *decoder) address(n *yaml.Node, what string) string {
	s, ok := d.text(n, what)
	if !ok {
		return ""
	}
	if path, isSocket := unixsocket.Path(s); isSocket {
		d.socketPath(n, what, path)
		return s
	}
	const example = "write for example 127.0.0.1:8080, or :8080 for all addresses of this machine"
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		d.Fail(n, "%s: %s: want host:port; %s", what, yamlfile.Quote(s), example)
		return ""
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		d.Fail(n, "%s: %s: the port is %s, want 0 to 65535; %s", what, yamlfile.Quote(s), yamlfile.Quote(port), example)
		return ""
	}
	return s
}

// overlap reports whether two good addresses cannot both be listened on: the same port, and
// the same host or one that is all of them.
func overlap(a, b string) bool {
	if isSocket(a) {
		return a == b
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portNumber(portA) != portNumber(portB) || portNumber(portA) == 0 {
		return false
	}
	return hostA == hostB || isEvery(hostA) || isEvery(hostB)
}

// checkReusePort refuses a port that cannot be another process's, too.
func (d *decoder) checkReusePort(at *yaml.Node, l Listener) {
	if at == nil || !l.ReusePort || l.Address == "" {
		return
	}
	if isSocket(l.Address) {
		d.Fail(at, "reuse_port: %s is a Unix socket and has no port: leave it out", l.Address)
	} else if _, port, err := net.SplitHostPort(l.Address); err == nil && portNumber(port) == 0 {
		d.Fail(at, "reuse_port: %s is another port in each process: write the port", l.Address)
	}
}

func portNumber(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 16) // it was checked
	return n
}

func isEvery(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// admin reads an address, or a mapping with one.
func (d *decoder) admin(n *yaml.Node) *Admin {
	a := &Admin{Keys: admin.KeysHashed}
	if yamlfile.Target(n).Kind != yaml.MappingNode {
		a.Address = d.address(n, "admin")
		d.adminIsLocal(n, a)
		return a
	}
	seen := d.mapping(n, "admin",
		d.addressField(&a.Address),
		modeField(d, &a.Mode),
		d.yesField("allow_remote", &a.AllowRemote),
		d.yesField("pprof", &a.Pprof),
		choiceField(d, "keys", admin.AllKeys, &a.Keys),
		field{"hosts", func(n *yaml.Node) {
			d.list(n, "hosts", func(n *yaml.Node) { a.Hosts = append(a.Hosts, d.adminHost(n)) })
		}},
	)
	if seen == nil {
		return nil
	}
	if seen["address"] == nil {
		d.Fail(n, "admin: no address: write for example address: 127.0.0.1:9090")
	}
	d.adminIsLocal(seen["address"], a)
	d.checkMode(seen["mode"], a.Address)
	return a
}

// adminHost reads a name by which the page may be asked. A name for all below another is not one: any of them could be
// another party's.
func (d *decoder) adminHost(n *yaml.Node) string {
	name := d.host(n)
	if strings.HasPrefix(name, "*.") {
		d.Fail(n, "hosts: %s: want one name, such as weir.example.com", yamlfile.Quote(name))
	}
	return name
}

func (d *decoder) adminIsLocal(at *yaml.Node, a *Admin) {
	if !a.AllowRemote && isRemote(a.Address) {
		d.Fail(at, "admin: %s can be reached from other machines: use 127.0.0.1, or say allow_remote: true", a.Address)
	}
}

// isRemote reports whether a good address can be reached from other machines.
func isRemote(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && !isSocket(address) && !isLoopback(host)
}

// checkAdmin keeps the administrator's listener off the addresses of public ones.
func (d *decoder) checkAdmin(f *File, n *yaml.Node) {
	if f.Admin != nil {
		d.notPublic(f, n, "admin", f.Admin.Address)
	}
}

// notPublic refuses an address that clients are served at.
func (d *decoder) notPublic(f *File, n *yaml.Node, what, address string) {
	for _, l := range f.Listen {
		if overlap(address, l.Address) {
			d.Fail(n, "%s: %s is a public listener's, %s: choose another port", what, address, l.Address)
		}
	}
}
