package rpclimit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

// A Hasher makes the keys of one limit. Texts and addresses have the same keys as in package httplimit.
type Hasher = limits.Hasher

// A KeyFunc returns the key from which a call or a message takes its tokens: see [limits.KeyFunc].
type KeyFunc = limits.KeyFunc[Call]

// peerIP makes the key for [Peer].
var peerIP, _ = httplimit.NewClientIP() // without options it never fails

// Peer is a [KeyFunc] whose key is the connection's address. For an IPv6 address, the key is its first 64 bits. Use
// Peer if there is no proxy between client and server. All peers without an address, such as peers on a Unix socket,
// share one key. In a client, all calls share that key.
func Peer(h Hasher, c Call) (engine.Key, bool) {
	return h.KeyAddr(peerIP.PrefixOf(peerIP.AddrOf(c.Peer, nil)).Addr()), true
}

// ClientAddr returns a [KeyFunc] whose key is the client's address, which ip finds. The client is the peer, unless ip
// trusts the peer as a proxy. The address then comes from the metadata (x-forwarded-for, or the name from
// [httplimit.IPHeader]). The metadata of any other peer is ignored, so a client cannot choose its key. If ip is nil,
// ClientAddr returns an error.
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
// its value is empty, fallback makes the key. With a nil fallback, the limit does not apply to such calls. Since a
// client could then avoid the limit by omitting the name, give a fallback, such as [Peer].
//
// Calls with several different values ([Call.Value]) all share one key. Otherwise a client could add values to get a
// new bucket for every call. Verify the value before the limit, because each made-up value gets a fresh bucket. A key
// has eight bytes for a value of any length.
//
// The name may be in any case, although metadata has only lower case. MetadataValue returns an error for a name that
// metadata cannot have. It also returns an error for a name that begins with grpc-, because the protocol reserves such
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
			return ambiguousKey(h)
		case value != "":
			return h.Key(value), true
		}
		return fallback.Or(h, c)
	}, nil
}

// ambiguousKey returns the key that is shared by all calls whose value or method is not certain. It is not the key of
// any text or address.
func ambiguousKey(h Hasher) (engine.Key, bool) { return h.KeyUint64(0), true }

// Everyone is the [KeyFunc] of a global limit: all calls have the same key.
func Everyone(h Hasher, _ Call) (engine.Key, bool) { return h.KeyUint64(0), true }

// Target is a [KeyFunc] whose key is the target of a client's call ([Call].Target).
func Target(h Hasher, c Call) (engine.Key, bool) { return h.Key(c.Target), true }

// Method is a [KeyFunc] whose key is the method. Methods that the server does not have ([Call].Unknown) share one key,
// so that made-up methods share one bucket. In a proxy, use [MethodOf] with the methods that the proxy passes on.
func Method(h Hasher, c Call) (engine.Key, bool) {
	if c.Unknown {
		return ambiguousKey(h)
	}
	return h.Key(c.Method), true
}

// MethodOf returns a [KeyFunc] for methods. Each of the names has a key. The names have the form of [MatchMethods]: if
// a name ends in a star, all methods that it matches share its key. All methods that no name matches share one further
// key.
func MethodOf(names ...string) (KeyFunc, error) {
	patterns, err := newMethods("MethodOf", names)
	if err != nil {
		return nil, err
	}
	return func(h Hasher, c Call) (engine.Key, bool) {
		if name, found := patterns.find(c.Method); found {
			return h.Key(name), true
		}
		return ambiguousKey(h)
	}, nil
}

// Join returns a [KeyFunc] whose key has several parts, for example for a limit per user and method. The parts ("a",
// "bc") and ("ab", "c") make different keys. If one part says that the limit does not apply, the limit does not apply.
// Join itself does not allocate for a call.
//
// Every part must make its key with the given [Hasher]; otherwise it counts as the empty text.
func Join(parts ...KeyFunc) KeyFunc { return limits.Join(parts...) }
