package httplimit

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
)

// A ClientIP finds the address of a request's client, and makes the client's key from it. Make it with [NewClientIP].
// It is safe for concurrent use. It allocates only if the address or header that it reads is malformed.
//
// The client is the peer of the connection, unless the peer is a trusted proxy ([TrustProxies]). If it is, all lines of
// the proxies' header are read as one list, from right to left. The first address that is not trusted is the client.
// The search also ends at an element that is not an address; then the client is the last address that was read. So only
// the part of the header that trusted proxies wrote is used. What a client writes into the header has no effect.
//
// Ports and zones are ignored. An IPv4 address that is mapped into IPv6 counts as the IPv4 address.
type ClientIP struct {
	trusted   []netip.Prefix
	trustUnix bool
	header    string // canonical name
	forwarded bool   // the header has the syntax of RFC 7239
	bits4     int
	bits6     int
}

// An IPOption changes one thing about a [ClientIP].
type IPOption func(*ClientIP) error

// NewClientIP returns a ClientIP. Without options it uses the socket's address, cut to /32 or /64, and trusts no
// header.
func NewClientIP(options ...IPOption) (*ClientIP, error) {
	c := &ClientIP{bits4: 32, bits6: 64}
	for i, option := range options {
		if option == nil {
			return nil, fmt.Errorf("httplimit: NewClientIP: option %d of %d is nil", i+1, len(options))
		}
		if err := option(c); err != nil {
			return nil, err
		}
	}
	if c.header == "" {
		c.header = "X-Forwarded-For"
	} else if len(c.trusted) == 0 && !c.trustUnix {
		return nil, fmt.Errorf("httplimit: IPHeader(%q): no header is trusted without TrustProxies", c.header)
	}
	return c, nil
}

// TrustProxies names the proxies whose header is trusted, as addresses and CIDR prefixes: "10.0.0.0/8", "2001:db8::1".
// Several TrustProxies options add up. No client may have an address in these ranges, because it could then claim any
// address.
func TrustProxies(prefixes ...string) IPOption {
	return func(c *ClientIP) error {
		if len(prefixes) == 0 {
			return errors.New("httplimit: TrustProxies(): want at least one address or CIDR prefix")
		}
		for _, text := range prefixes {
			prefix, err := parsePrefix(text)
			if err != nil {
				return fmt.Errorf("httplimit: TrustProxies: %w", err)
			}
			c.trusted = append(c.trusted, prefix)
		}
		return nil
	}
}

// TrustUnixSocket trusts the header of peers on a Unix socket, which have no IP address. Without this option, all such
// peers share the key of the address "::".
func TrustUnixSocket() IPOption {
	return func(c *ClientIP) error {
		c.trustUnix = true
		return nil
	}
}

// IPHeader names the header in which the proxies write the client's address. This may be X-Forwarded-For (the default),
// Forwarded (RFC 7239), or another header with one or more addresses, such as X-Real-IP. Choose a header that your
// proxies write. They pass on every other header as the client sent it.
func IPHeader(name string) IPOption {
	return func(c *ClientIP) error {
		if !isToken(name) {
			return fmt.Errorf("httplimit: IPHeader(%q): want the name of an HTTP header, such as X-Forwarded-For", name)
		}
		c.header = http.CanonicalHeaderKey(name)
		c.forwarded = c.header == "Forwarded"
		return nil
	}
}

// IPv6Prefix sets how many leading bits of an IPv6 address are the key, 1 to 128. The default is 64, because one
// customer usually gets a whole /64 or more.
func IPv6Prefix(bits int) IPOption {
	return func(c *ClientIP) error {
		if bits < 1 || bits > 128 {
			return fmt.Errorf("httplimit: IPv6Prefix(%d): want 1 to 128", bits)
		}
		c.bits6 = bits
		return nil
	}
}

// IPv4Prefix sets how many leading bits of an IPv4 address are the key, 1 to 32 (the default).
func IPv4Prefix(bits int) IPOption {
	return func(c *ClientIP) error {
		if bits < 1 || bits > 32 {
			return fmt.Errorf("httplimit: IPv4Prefix(%d): want 1 to 32", bits)
		}
		c.bits4 = bits
		return nil
	}
}

// remoteIP makes the key for a [Limit] without a Key.
var remoteIP = &ClientIP{header: "X-Forwarded-For", bits4: 32, bits6: 64}

// RemoteIP is a [KeyFunc] whose key is the socket's address. For an IPv6 address, the key is its first 64 bits. Use
// RemoteIP if there is no proxy between client and server.
func RemoteIP(h Hasher, r *http.Request) (engine.Key, bool) { return remoteIP.Key(h, r) }

// Key is a [KeyFunc] whose key is the prefix of the client's address ([IPv4Prefix], [IPv6Prefix]). It applies to every
// request.
func (c *ClientIP) Key(h Hasher, r *http.Request) (engine.Key, bool) {
	return h.KeyAddr(c.Prefix(r).Addr()), true
}

// Prefix returns the prefix of the client's address by which a request is limited. If the client has no address, it
// returns the zero Prefix.
func (c *ClientIP) Prefix(r *http.Request) netip.Prefix { return c.PrefixOf(c.Addr(r)) }

// PrefixOf returns the prefix by which this client is limited. For the zero Addr, it returns the zero Prefix.
func (c *ClientIP) PrefixOf(client netip.Addr) netip.Prefix {
	bits := c.bits6
	if client.Is4() {
		bits = c.bits4
	}
	prefix, _ := client.Prefix(bits) // fails for the zero Addr, and then prefix is zero, too
	return prefix
}

// Addr returns the address of a request's client. It returns the zero Addr if RemoteAddr is not an address. It also
// does so for a peer on a Unix socket that is not trusted, even if RemoteAddr looks like an address.
func (c *ClientIP) Addr(r *http.Request) netip.Addr {
	peer := peerOf(r)
	if !c.trusts(peer) {
		return peer
	}
	lines := r.Header[c.header]
	if len(lines) == 1 && len(lines[0]) <= shortList {
		return c.clientBehind(peer, lines)
	}
	return reading.ClientAddr(r, c, func() netip.Addr { return c.clientBehind(peer, lines) })
}

// shortList is a length in bytes. If the proxies' header is not longer, parsing it again for each limit is faster than
// a cache.
const shortList = 64

// peerOf returns the address of the connection. It ignores RemoteAddr for a Unix socket. There, the client chooses the
// name, and the name may look like an address.
func peerOf(r *http.Request) netip.Addr {
	peer, ok := parseAddr(r.RemoteAddr, false)
	if ok {
		if _, unix := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); unix {
			return netip.Addr{}
		}
	}
	return peer
}

// IsProxy reports whether the address of a request's connection belongs to a trusted proxy.
func (c *ClientIP) IsProxy(r *http.Request) bool { return c.trusts(peerOf(r)) }

// AddrOf is [ClientIP.Addr] for protocols other than HTTP. The parameter peer is the address of the connection, or the
// zero Addr. If peer is trusted, AddrOf calls the function lines, which must return all values of the header
// [ClientIP.Header].
func (c *ClientIP) AddrOf(peer netip.Addr, lines func() []string) netip.Addr {
	peer = peer.Unmap().WithZone("")
	if !c.trusts(peer) {
		return peer
	}
	return c.clientBehind(peer, lines())
}

// Header returns the canonical name ([http.CanonicalHeaderKey]) of the proxies' header.
func (c *ClientIP) Header() string { return c.header }

// clientBehind returns the address of the client behind a trusted proxy. The parameter client is at first the address
// of the proxy.
func (c *ClientIP) clientBehind(client netip.Addr, lines []string) netip.Addr {
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var element string
			rest, element, more = c.cutLast(rest)
			addr, ok := c.parseElement(element)
			if !ok {
				return client
			}
			if client = addr; !c.trusts(addr) {
				return client
			}
		}
	}
	return client
}

// trusts reports whether an address belongs to a trusted proxy. The zero Addr means a peer on a Unix socket. No address
// in a header is the zero Addr.
func (c *ClientIP) trusts(addr netip.Addr) bool {
	if !addr.IsValid() {
		return c.trustUnix
	}
	for _, prefix := range c.trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// cutLast cuts the last element off a list.
func (c *ClientIP) cutLast(list string) (rest, element string, more bool) {
	comma := strings.LastIndexByte(list, ',')
	if c.forwarded {
		comma = lastComma(list)
	}
	if comma < 0 {
		return "", list, false
	}
	return list[:comma], list[comma+1:], true
}

// parseElement parses the address in an element of the list.
func (c *ClientIP) parseElement(element string) (netip.Addr, bool) {
	if !c.forwarded {
		return parseAddr(strings.Trim(element, " \t"), false)
	}
	node, ok := forwardedFor(element)
	if !ok {
		return netip.Addr{}, false
	}
	return parseAddr(node, true)
}

// parseAddr parses an address that may have a port and a zone: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1],
// [2001:db8::1]:80. If namedPort is set, the port may also be a name such as _port (RFC 7239).
func parseAddr(s string, namedPort bool) (netip.Addr, bool) {
	host, port, bracketed := s, "", false
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return netip.Addr{}, false
		}
		host, port, bracketed = s[1:end], s[end+1:], true
	} else if colon := strings.IndexByte(s, ':'); colon >= 0 && colon == strings.LastIndexByte(s, ':') {
		host, port = s[:colon], s[colon:] // an IPv6 address has two colons or more
	}
	if port != "" && !isPort(port, namedPort) {
		return netip.Addr{}, false
	}
	// The zone is removed before parsing, because netip would allocate memory for it.
	if i := strings.IndexByte(host, '%'); i > 0 && i < len(host)-1 && strings.IndexByte(host[:i], ':') >= 0 {
		host = host[:i]
	}
	// A text as short or as long as this cannot be an address, and ParseAddr would allocate an error for it.
	if len(host) < len("::") || len(host) > len("0000:0000:0000:0000:0000:ffff:255.255.255.255") {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || bracketed && addr.Is4() {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// isPort reports whether s is a colon and a port.
func isPort(s string, named bool) bool {
	if s[0] != ':' || len(s) < 2 {
		return false
	}
	s = s[1:]
	if named && s[0] == '_' {
		return len(s) > 1
	}
	if len(s) > 5 {
		return false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n <= 65535
}

// parsePrefix parses an address or a CIDR prefix.
func parsePrefix(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a CIDR prefix such as 10.0.0.0/8", text)
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR prefix such as 10.0.0.0/8", text)
	}
	if prefix != prefix.Masked() {
		return netip.Prefix{}, fmt.Errorf("%q has bits beyond its prefix: want %v or one address", text,
			prefix.Masked())
	}
	if addr := prefix.Addr(); addr.Is4In6() { // at least 96 bits: fewer fail the check above
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	return prefix, nil
}
