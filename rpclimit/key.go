package rpclimit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

// A Hasher makes the keys of one limit. In a limit of HTTP requests the same text or address has the same key.
type Hasher = limits.Hasher

// A KeyFunc returns the key from which a call takes its tokens: see [limits.KeyFunc]. It is also called for each
// message.
type KeyFunc = limits.KeyFunc[Call]

// peerIP finds the address for [Peer].
var peerIP, _ = httplimit.NewClientIP() // without options it never fails

// Peer is the [KeyFunc] of the address of the connection, IPv6 cut to /64. Without a proxy in between, this is the
// client. All peers without an address, such as those on a Unix socket, share one key. So do all calls that are limited
// in a client.
func Peer(h Hasher, c Call) (engine.Key, bool) {
	return h.KeyAddr(peerIP.PrefixOf(peerIP.AddrOf(c.Peer, nil)).Addr()), true
}

// ClientAddr returns the [KeyFunc] of the client's address as ip finds it. This is the peer. If the peer is a proxy
// that ip trusts, it is the address that the proxies wrote into the metadata (x-forwarded-for, or the name from
// [httplimit.IPHeader]). Metadata from any other peer is ignored, so a client cannot choose its key. A nil ip is an
// error.
func ClientAddr(ip *httplimit.ClientIP) (KeyFunc, error) {
	if ip == nil {
		return nil, errors.New("rpclimit: ClientAddr(nil): want what httplimit.NewClientIP returns")
	}
	name := strings.ToLower(ip.Header())
	return func(h Hasher, c Call) (engine.Key, bool) {
		client := ip.AddrOf(c.Peer, func() []string {
			if c.Metadata == nil {
				return nil
			}
			lines, _ := c.Metadata.Values(c.Context, name)
			return lines
		})
		return h.KeyAddr(ip.PrefixOf(client).Addr()), true
	}, nil
}

// MetadataValue returns the [KeyFunc] of a value of the metadata, such as x-api-key. If the name is absent or its value
// empty, fallback makes the key. With a nil fallback this limit does not apply to such calls. A client that leaves the
// name out then has no limit, so give a fallback, such as [Peer].
//
// All calls in which the name has several different values ([Call.Value]) share one key. The server may read another
// value than the limit does. So if the first value were the key, a client could get a new bucket for every call.
//
// Use a value that is checked before the limit: if a client can make up values, each value is a fresh bucket. A value
// of any length has a key of eight bytes.
//
// The name may be written in upper case, although metadata has lower case only. A name that metadata cannot have is an
// error, and so is a name that begins with grpc-, which the protocol reserves.
func MetadataValue(name string, fallback KeyFunc) (KeyFunc, error) {
	lower := strings.ToLower(name)
	if strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || lower == "" {
		return nil, fmt.Errorf("rpclimit: MetadataValue(%q): want a name of metadata, of letters, digits and - _ . such as x-api-key", name)
	}
	if strings.HasPrefix(lower, "grpc-") {
		return nil, fmt.Errorf("rpclimit: MetadataValue(%q): names with grpc- are the protocol's own: want another", name)
	}
	return func(h Hasher, c Call) (engine.Key, bool) {
		switch value, ok := c.Value(lower); {
		case !ok:
			return ambiguous(h)
		case value != "":
			return h.Key(value), true
		}
		return fallback.Or(h, c)
	}, nil
}

// ambiguous returns the key of all calls whose value or method is not certain. No text and no address has this key.
func ambiguous(h Hasher) (engine.Key, bool) { return h.KeyUint64(0), true }

// Everyone is the [KeyFunc] of a global limit: all calls have one key.
func Everyone(h Hasher, _ Call) (engine.Key, bool) { return h.KeyUint64(0), true }

// Target is the [KeyFunc] of the target of a client's call ([Call].Target).
func Target(h Hasher, c Call) (engine.Key, bool) { return h.Key(c.Target), true }

// Method is the [KeyFunc] of the method. All methods that the server does not have ([Call].Unknown) share one key, so
// that made-up methods share one bucket. A proxy uses [MethodOf] to name the methods that it passes on.
func Method(h Hasher, c Call) (engine.Key, bool) {
	if c.Unknown {
		return ambiguous(h)
	}
	return h.Key(c.Method), true
}

// MethodOf returns the [KeyFunc] of the method, for the methods that names lists ([MatchMethods]). All methods that a
// name with a star matches share one key, and all methods that no name matches share another.
func MethodOf(names ...string) (KeyFunc, error) {
	known, err := newMethods("MethodOf", names)
	if err != nil {
		return nil, err
	}
	return func(h Hasher, c Call) (engine.Key, bool) {
		if name, found := known.find(c.Method); found {
			return h.Key(name), true
		}
		return ambiguous(h)
	}, nil
}

// Join returns the [KeyFunc] of several parts together, such as for a limit per user and method. ("a", "bc") and ("ab",
// "c") differ. If one of the parts says that the limit does not apply, the limit does not apply. Join itself does not
// allocate for a call.
//
// Every part must make its key with the [Hasher] that it is given; otherwise the part counts as the empty text.
func Join(parts ...KeyFunc) KeyFunc { return limits.Join(parts...) }
