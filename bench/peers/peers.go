// Package peers gives the limiters of other projects a common interface. Each limiter has its newest version, and is
// configured as its documentation recommends.
package peers

import "time"

// A Limiter decides whether a request for a key may pass.
type Limiter interface{ Allow(key string) bool }

// A Limit is the limit of each key: a number of tokens (Tokens) per period (Per), and Burst tokens in a full bucket.
// For limiters with windows, Tokens is the number of tokens in a window.
type Limit struct {
	Tokens int
	Per    time.Duration
	Burst  int
}

func (l Limit) rate() float64 { return float64(l.Tokens) / l.Per.Seconds() }

func (l Limit) every() time.Duration { return l.Per / time.Duration(l.Tokens) }

// An Ability is something that a row requires of a limiter, apart from admitting requests.
type Ability string

const (
	Keys   Ability = "keys"   // one limit for each of many keys
	Refuse Ability = "refuse" // refuse at once, without waiting
	Bound  Ability = "bound"  // keep memory bounded while every request has a new key
	Cost   Ability = "cost"   // take n tokens together, all or none
)

// A Peer is one limiter.
type Peer struct {
	Name    string
	Module  string // the module whose version is printed
	How     string // how it is configured, in one sentence
	Package bool   // a published library; otherwise a few lines that users write themselves
	// New returns a limiter for about the number of keys in the argument keys.
	New func(limit Limit, keys int) (Limiter, error)
	// Cannot says why the peer lacks an ability.
	Cannot map[Ability]string
}

// An Absent is a peer that is not measured, with the reason.
type Absent struct{ Name, Reason string }

type allow func(key string) bool

func (a allow) Allow(key string) bool { return a(key) }

// All returns the peers in the order of the tables.
func All() []Peer {
	return []Peer{
		diyXsync, diyCounter, diyShards, unkeyWindows,
		rateXsync, rateSyncMap, rateMutex,
		sethvargo, throttledMap, throttledLRU, ululeMemory, tollboothKeys, httprateCounter, tailscaleLRU, echoStore, dskitTenants,
		uberUnkeyed, jujuUnkeyed, failsafeUnkeyed,
	}
}

// NotMeasured returns the peers that are missing from the comparison.
func NotMeasured() []Absent {
	const refused = "the Go module proxy that this module is built with refuses it (403)"
	return []Absent{
		{"github.com/webriots/rate", refused + "; it is lock-free and bounded, and keys that meet in its table share a bucket"},
		{"github.com/clipperhouse/rate", refused},
		{"github.com/mennanov/limiters", refused},
		{"github.com/didip/tollbooth/v8", refused + "; v7 is measured instead"},
		{"tailscale.com after v1.94", "needs a newer Go than this module; v1.94.2 is measured instead"},
		{"golang.org/x/time v0.16.0", "needs Go 1.26 and differs from v0.15.0, which is measured, in nothing else"},
	}
}

const (
	neverForgets = "no key is ever forgotten, so memory grows with every new one"
	noKeys       = "one limit for everybody"
)
