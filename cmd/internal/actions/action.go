package actions

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind is the effect of an action.
type Kind string

// These are the kinds.
const (
	Ban    Kind = "ban"    // requests are refused
	Exempt Kind = "exempt" // rules are not applied
	Shadow Kind = "shadow" // rules count, but refuse nothing
)

// Kinds has all kinds.
var Kinds = []Kind{Ban, Exempt, Shadow}

// These are the bounds of actions.
const (
	MaxActions = 1000                // actions at a time
	Shortest   = time.Second         // the shortest time of an action
	Longest    = 30 * 24 * time.Hour // the longest time of an action
	maxWho     = 64                  // characters
	maxWhy     = 200                 // characters
)

// A KeyID stands for the text of a key.
type KeyID [16]byte

// MarshalText returns the id in hexadecimal digits.
func (id KeyID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText sets the id from the text that MarshalText returned.
func (id *KeyID) UnmarshalText(text []byte) error {
	decoded, err := hex.DecodeString(string(text))
	if err != nil || len(decoded) != len(id) {
		return fmt.Errorf("a key of %.40q: want %d hexadecimal digits", text, 2*len(id))
	}
	copy(id[:], decoded)
	return nil
}

// A Target is the network, the rule, or the key of a rule to which an action applies.
type Target struct {
	Network netip.Prefix `json:"network,omitzero"`
	Rule    string       `json:"rule,omitempty"`
	Key     KeyID        `json:"key,omitzero"`   // a key of the rule; zero for the whole rule
	Form    string       `json:"form,omitempty"` // the form of the rule's keys; only with a Key
}

// IsKey reports whether the target is a key of a rule.
func (t *Target) IsKey() bool { return t.Key != KeyID{} }

func (t *Target) check() error {
	switch {
	case t.Network.IsValid() == (t.Rule != ""):
		return errors.New("want either a network or a rule")
	case t.Network.IsValid() && t.Network != t.Network.Masked():
		return fmt.Errorf("%v has bits after the prefix: did you mean %v?", t.Network, t.Network.Masked())
	case t.Network.Addr().Is4In6() || t.Network.Addr().Zone() != "":
		return fmt.Errorf("%v: want an IPv4 network in IPv4 notation, and no zone", t.Network)
	case t.IsKey() && t.Rule == "":
		return errors.New("a key without a rule")
	}
	return nil
}

// ParseNetwork parses an address or a network: 192.0.2.1, 192.0.2.0/24, 2001:db8::/48. A single address becomes a
// network of one address, and an IPv4 network mapped into IPv6 becomes the IPv4 network. It is an error if the text has
// a zone, or if a bit after the prefix is set.
func ParseNetwork(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		addr, notAddr := netip.ParseAddr(text)
		if notAddr != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%.60q: want an address or a network without a zone, such as 192.0.2.1 or 2001:db8::/48", text)
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if addr := p.Addr(); addr.Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%.60q: write an IPv4 network in IPv4 notation, such as 192.0.2.0/24", text)
		}
		p = netip.PrefixFrom(addr.Unmap(), p.Bits()-96)
	}
	return p, (&Target{Network: p}).check()
}

// An Action is an active or ended action.
type Action struct {
	ID   uint64 `json:"id"`
	Kind Kind   `json:"kind"`
	Target
	Text  string    `json:"text,omitempty"` // the text of the key, if keys are shown
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Who   string    `json:"who"`
	Why   string    `json:"why"`
}

func (a *Action) check() error {
	switch a.Kind {
	case Ban, Exempt, Shadow:
	default:
		return fmt.Errorf("an action %.20q: want ban, exempt or shadow", a.Kind)
	}
	if err := checkText("who", a.Who, maxWho); err != nil {
		return err
	}
	if err := checkText("why", a.Why, maxWhy); err != nil {
		return err
	}
	if d := a.Until.Sub(a.From); d < Shortest || d > Longest {
		return fmt.Errorf("for %v: want %v to %v", d, Shortest, Longest)
	}
	return a.Target.check()
}

// checkText refuses a text that is missing, too long or not printable.
func checkText(name, text string, maxLen int) error {
	if n := utf8.RuneCountInString(text); n == 0 || n > maxLen || !utf8.ValidString(text) {
		return fmt.Errorf("%s has %d characters: want 1 to %d", name, n, maxLen)
	}
	for _, c := range text {
		if !unicode.IsPrint(c) {
			return fmt.Errorf("%s %q: want characters that print, on one line", name, text)
		}
	}
	return nil
}

// String returns the kind and the target of the action as text, for the log.
func (a *Action) String() string {
	switch {
	case a.Network.IsValid():
		return fmt.Sprintf("%s of the network %v", a.Kind, a.Network)
	case a.IsKey():
		return fmt.Sprintf("%s of a key of the rule %s", a.Kind, a.Rule)
	}
	return fmt.Sprintf("%s of the rule %s", a.Kind, a.Rule)
}

// An Active is an action that counts the requests of this process to which it has applied.
type Active struct {
	Action
	hits atomic.Uint64
}

// Hits returns the number of requests that the action has applied to so far.
func (a *Active) Hits() uint64 { return a.hits.Load() }

func macOf(secret []byte, text string) (id KeyID) {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	copy(id[:], mac.Sum(nil))
	return id
}
