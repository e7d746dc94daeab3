package rpclimit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

// A Hasher makes the keys of one limit. The same text or address has the same key in a limit of HTTP requests.
type Hasher = limits.Hasher

// A KeyFunc returns the key that a call is charged to: see [limits.KeyFunc]. It is called for a message as for a call.
type KeyFunc = limits.KeyFunc[Call]

// peerIP is what [Peer] uses.
var peerIP, _ = httplimit.NewClientIP() // no option that could fail

// Peer is the [KeyFunc] of the address of the connection, IPv6 cut to /64: the client, where no proxy is in between.
// All peers without an address, such as those of a Unix socket, have one key together; so have the calls of a client.
func Peer(h Hasher, c Call) (engine.Key, bool) {
	return h.KeyAddr(peerIP.PrefixOf(peerIP.AddrOf(c.Peer, nil)).Addr()), true
}

// ClientAddr returns the [KeyFunc] of the client's address as ip finds it: the peer, or where that is a proxy that ip
// trusts, the address that the proxies wrote into the metadata (x-forwarded-for, or what [httplimit.IPHeader] names).
// Metadata from any other peer is not looked at, so a client cannot choose its key. A nil ip is an error.
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

// MetadataValue returns the [KeyFunc] of a value of the metadata, such as that of x-api-key, which falls back to
// another where the name is absent or its value empty. A nil fallback leaves such calls unlimited by this limit. A
// client that may leave the name out then has no limit, so give one, such as [Peer].
//
// All calls in which the name has several values that differ ([Call.Value]) have one key together. A server may read
// another of them than the limit, so with the first as the key a client could have a new bucket for every call.
//
// Use a value that is checked in front of the limit: where the client can make up values, each is a fresh bucket. A
// value of any length has a key of eight bytes.
//
// The name may be in upper case, which metadata has not. One that metadata cannot have, and one that begins with grpc-
// and is the protocol's own, are errors.
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

// ambiguous returns the key of all calls whose value or method is not certain. No text and no address has it.
func ambiguous(h Hasher) (engine.Key, bool) { return h.KeyUint64(0), true }

// Everyone is the [KeyFunc] of a global limit: all calls have one key.
func Everyone(h Hasher, _ Call) (engine.Key, bool) { return h.KeyUint64(0), true }

// Target is the [KeyFunc] of what a client calls ([Call].Target).
func Target(h Hasher, c Call) (engine.Key, bool) { return h.Key(c.Target), true }

// Method is the [KeyFunc] of the method. All methods that the server does not have ([Call].Unknown) are one, so that
// made-up ones have one bucket together; a proxy names those that it passes on by [MethodOf].
func Method(h Hasher, c Call) (engine.Key, bool) {
	if c.Unknown {
		return ambiguous(h)
	}
	return h.Key(c.Method), true
}

// MethodOf returns the [KeyFunc] of the method if it is one of those named ([MatchMethods]); a name with a star is one
// key for all that it matches. All other methods have one key together.
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

// Join returns the [KeyFunc] of several parts together: a limit per user and method, say. ("a", "bc") and ("ab", "c")
// differ. Where one of the parts says that the limit does not apply, it does not. It does not allocate, beyond what the
// parts do.
//
// Every part must make its key with the [Hasher] that it is given; one that does not counts as the empty text.
func Join(parts ...KeyFunc) KeyFunc { return limits.Join(parts...) }
