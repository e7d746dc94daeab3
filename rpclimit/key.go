package rpclimit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

// A Hasher makes the keys of one limit. A text or an address has the same key as in a limit of package httplimit.
type Hasher = limits.Hasher

// A KeyFunc returns the key from which a call takes its tokens: see [limits.KeyFunc]. It is also called for each
// message.
type KeyFunc = limits.KeyFunc[Call]

// peerIP makes the key for [Peer].
var peerIP, _ = httplimit.NewClientIP() // without options it never fails

// Peer is a [KeyFunc] whose key is the address of the connection. For IPv6, the key is only the first 64 bits of this
// address. If there is no proxy between the client and the server, the key identifies the client. All peers without an
// address, such as peers on a Unix socket, share one key. In a client, all calls share that key, too.
func Peer(h Hasher, c Call) (engine.Key, bool) {
	return h.KeyAddr(peerIP.PrefixOf(peerIP.AddrOf(c.Peer, nil)).Addr()), true
}

// ClientAddr returns a [KeyFunc] whose key is the client's address. The parameter ip finds this address. It is usually
// the address of the peer. If the peer is a proxy that ip trusts, the client's address is the address that the proxies
// have written into the metadata (x-forwarded-for, or the name from [httplimit.IPHeader]). Metadata from any other peer
// is ignored, so a client cannot choose its key. If ip is nil, ClientAddr returns an error.
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

// MetadataValue returns a [KeyFunc] whose key is a value of the metadata, such as x-api-key. If the name is absent or
// its value is empty, fallback makes the key. With a nil fallback, the limit does not apply to such calls, so a client
// that omits the name has no limit. Therefore give a fallback, such as [Peer].
//
// All calls in which the name has several different values ([Call.Value]) share one key. The reason is that the server
// may use another value than the limit uses. If the first value were the key, a client could get a new bucket for every
// call.
//
// Use a value that is verified before the limit, because each value that a client makes up would get a fresh bucket.
// The key has eight bytes for a value of any length.
//
// The name may have upper-case letters, although names in metadata have only lower case. MetadataValue returns an error
// for a name that metadata cannot have, and for a name that begins with grpc-, because the protocol reserves these
// names.
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

// ambiguous returns the key for calls whose value or method is not certain. All these calls share it. No text and no
// address has this key.
func ambiguous(h Hasher) (engine.Key, bool) { return h.KeyUint64(0), true }

// Everyone is the [KeyFunc] of a global limit: all calls have the same key.
func Everyone(h Hasher, _ Call) (engine.Key, bool) { return h.KeyUint64(0), true }

// Target is a [KeyFunc] whose key is the target of a client's call ([Call].Target).
func Target(h Hasher, c Call) (engine.Key, bool) { return h.Key(c.Target), true }

// Method is a [KeyFunc] whose key is the method. All methods that the server does not have ([Call].Unknown) share one
// key, so that made-up methods share one bucket. In a proxy, use [MethodOf] with the names of the methods that the
// proxy passes on.
func Method(h Hasher, c Call) (engine.Key, bool) {
	if c.Unknown {
		return ambiguous(h)
	}
	return h.Key(c.Method), true
}

// MethodOf returns a [KeyFunc] for methods. The parameter names has names in the form of [MatchMethods]. Each name has
// its own key. So if a name ends in a star, all methods that it matches share the key of this name. All methods that no
// name matches share one further key.
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

// Join returns a [KeyFunc] whose key has several parts, for example for a limit per user and method. The keys of ("a",
// "bc") and ("ab", "c") differ. If one of the parts says that the limit does not apply, the limit does not apply. Join
// itself does not allocate for a call.
//
// Every part must make its key with the [Hasher] that it is given; otherwise the part counts as the empty text.
func Join(parts ...KeyFunc) KeyFunc { return limits.Join(parts...) }
