package serve

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/engine"
)

// KeySource says what identifies the client of a request. The zero KeySource is
// the client's address. It reads from text as "ip" or "header:NAME".
type KeySource struct {
	header string // canonical name; "" for the address alone
}

const headerPrefix = "header:"

// notHeaders are taken out of http.Request.Header by net/http: as keys they
// would look absent in every request.
var notHeaders = []string{"Host", "Trailer", "Transfer-Encoding"}

// UnmarshalText accepts "ip" and "header:NAME".
func (k *KeySource) UnmarshalText(text []byte) error {
	s := string(text)
	name, isHeader := strings.CutPrefix(s, headerPrefix)
	switch {
	case s == "ip":
		*k = KeySource{}
	case isHeader && slices.Contains(notHeaders, http.CanonicalHeaderKey(name)):
		return fmt.Errorf("key %q: %s steers HTTP itself and cannot be a key; use a header that names the client", s, name)
	case isHeader && httpguts.ValidHeaderFieldName(name):
		*k = KeySource{header: http.CanonicalHeaderKey(name)}
	case isHeader:
		return fmt.Errorf("key %q: %q is not the name of an HTTP header; write for example header:X-API-Key", s, name)
	default:
		return fmt.Errorf("key %q: want ip, or header:NAME such as header:X-API-Key", s)
	}
	return nil
}

// String returns the text that UnmarshalText reads.
func (k KeySource) String() string {
	if k.header == "" {
		return "ip"
	}
	return headerPrefix + k.header
}

// A client is who is charged for a request: the value of a header, or an
// address. It is kept in this form because only some requests need it as text.
type client struct {
	header, value string     // header is "" for an address
	addr          netip.Addr // used without a header only
}

// client returns the client of r. A header that is absent or empty falls back
// to the address, so that leaving it out is no way around the limit.
//
// The address is the socket's. No X-Forwarded-For or the like is believed:
// anybody can send one, and so far there is no way to say which proxies may.
func (k KeySource) client(r *http.Request) (client, error) {
	if k.header != "" {
		if value := r.Header.Get(k.header); value != "" {
			return client{header: k.header, value: value}, nil
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return client{}, fmt.Errorf("the client's address %q is not IP:port: %w", r.RemoteAddr, err)
	}
	return client{addr: peer.Addr().Unmap().WithZone("")}, nil
}

// key returns the client's bucket. The engine hashes texts and addresses apart,
// so no header value can name the bucket of an address.
func (c client) key(limiter *engine.Limiter) engine.Key {
	if c.header != "" {
		return limiter.Key(c.value)
	}
	return limiter.KeyAddr(c.addr)
}

// String names the client for people.
func (c client) String() string {
	if c.header != "" {
		return fmt.Sprintf("header %s: %s", c.header, c.value)
	}
	return "ip " + c.addr.String()
}
