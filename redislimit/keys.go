package redislimit

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
)

const maxFullKey = 256

// Secret sets a secret of at least 16 characters with which keys are hashed. So a person who can read the store cannot
// find out a key by hashing candidates, such as all addresses. The default is no secret. All nodes must use the same
// secret.
func Secret(secret string) ClientOption {
	return func(c *clientConfig) error {
		if len(secret) < 16 {
			return fmt.Errorf("redislimit: Secret: %d characters: want at least 16", len(secret))
		}
		c.secret = sha256.Sum256([]byte("weir secret " + secret))
		return nil
	}
}

// FullKeys writes keys to the store in clear text, except keys longer than 256 bytes. Without this option keys are
// hashed, because a key may be a secret, such as an access token.
func FullKeys() ClientOption {
	return func(c *clientConfig) error {
		c.fullKeys = true
		return nil
	}
}

var noSecret = sha256.Sum256([]byte("weir"))

// A namer makes the names of a limit's keys in the store:
//
//	<prefix>:{pNNNN}:<algorithm and window>:<name>:#<hash of the key>
//	<prefix>:{pNNNN}:<algorithm and window>:<name>:=<key>              with FullKeys
//
// No two keys have the same name: the prefix and the limit's name contain no braces, a colon in the limit's name is
// escaped, and a hash has 128 bits.
type namer struct {
	prefix, suffix string // the text before and after the number of the partition
	secret         [sha256.Size]byte
	fullKeys       bool
}

func newNamer(c *clientConfig, kind, name string) namer {
	escaped := strings.NewReplacer("%", "%25", ":", "%3A").Replace(name)
	return namer{c.prefix + ":{p", "}:" + kind + ":" + escaped + ":", c.secret, c.fullKeys}
}

func (n *namer) name(partition int, key string) string {
	p := partition
	number := [...]byte{'0' + byte(p/1000), '0' + byte(p/100%10), '0' + byte(p/10%10), '0' + byte(p%10)}
	if n.fullKeys && len(key) <= maxFullKey {
		return n.prefix + string(number[:]) + n.suffix + "=" + key
	}
	// The hash is a message authentication code of the key. For this, the secret has a fixed length, and only half of
	// the hash is in the name: from a full hash, an attacker could compute the hash of an extended key.
	text := make([]byte, 0, 256)
	sum := sha256.Sum256(append(append(text, n.secret[:]...), key...))
	var code [22]byte
	base64.RawURLEncoding.Encode(code[:], sum[:16])
	return n.prefix + string(number[:]) + n.suffix + "#" + string(code[:])
}

// probe returns a name in the partition. No key has this name.
func (n *namer) probe(partition int) string { return n.name(partition, "")[:len(n.prefix)+4] + "}" }

func checkName(name string) error {
	if name == "" || len(name) > 128 {
		return fmt.Errorf("redislimit: a name of %d characters, %.140q: want 1 to 128", len(name), name)
	}
	if strings.ContainsAny(name, "{}") || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("redislimit: the name %q: want no braces and no control characters", name)
	}
	return nil
}
