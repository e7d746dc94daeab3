package redislimit

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// A Mode says what decides about a request.
type Mode uint8

const (
	// Auto is Leased where that suits the limit, and else Strict.
	Auto Mode = iota
	// Strict asks the store for every request, except where [BelieveRefusals] answers. While the store answers nothing
	// is over-admitted.
	Strict
	// Leased spends tokens on the node that the store has charged in advance.
	Leased
)

// String returns "auto", "strict" or "leased".
func (m Mode) String() string { return [...]string{"auto", "strict", "leased"}[m] }

// A FailurePolicy says what happens to requests while the store is lost.
type FailurePolicy uint8

const (
	// FailShare has every node admit its share: the limit divided by the number of nodes, from a full bucket. Where
	// that is less than a token, the bucket is empty when the store is lost, so that all nodes admit no more than the
	// limit.
	FailShare FailurePolicy = iota
	// FailClosed answers an error, which is ErrStore, and a refusal.
	FailClosed
	// FailOpen admits everything. A store that answers and drops keys is still asked.
	FailOpen
)

// String returns "share", "closed" or "open": the words of weir's rule file.
func (p FailurePolicy) String() string { return [...]string{"share", "closed", "open"}[p] }

// An Option changes one thing about a limiter at [New].
type Option func(*config) error

type config struct {
	mode      Mode
	nodes     int
	overdraft uint64
	onLoss    FailurePolicy
	maxKeys   int
	believe   time.Duration
	fraction  float64 // of the limit that a share is; 0: 1/nodes
	limit     script.Terms
	tiers     []engine.Policy
	isShared  bool   // limiters with other numbers have the name, for other keys
	debtFiles string // what their paths begin with; "" for none
}

func newConfig(name string, options []Option) (config, error) {
	c := config{nodes: defaults.Nodes, overdraft: defaults.Overdraft, maxKeys: defaults.MaxKeys, believe: defaults.Believe}
	for i, option := range options {
		if option == nil {
			return c, fmt.Errorf("redislimit: %s: option %d of %d is nil", name, i+1, len(options))
		}
		if err := option(&c); err != nil {
			return c, err
		}
	}
	if c.limit.Refusals != engine.ChargeNothing {
		c.believe = 0 // a refusal by the node would cost nothing
	}
	return c, nil
}

// InMode sets what decides; [Auto] without it. [Leased] for a limit that leases do not suit is an error of [New].
func InMode(m Mode) Option {
	return func(c *config) error {
		if m > Leased {
			return fmt.Errorf("redislimit: InMode(%d): want Auto, Strict or Leased", m)
		}
		c.mode = m
		return nil
	}
}

// Nodes sets how many nodes share the limit; 4 without it, 1 to 100,000. It need not be exact: it says how
// large a share is, and from which size on a limit is leased.
func Nodes(n int) Option {
	return func(c *config) error {
		if n < 1 || n > 100_000 {
			return fmt.Errorf("redislimit: Nodes(%d): want 1 to 100,000", n)
		}
		c.nodes = n
		return nil
	}
}

// Overdraft sets D, how many tokens a node may admit of a key before the store has charged them; 8 without it,
// 0 to 1,000 and at most twice a node's share of the limit. A quarter of it is for the first requests of a key,
// which are admitted without asking.
func Overdraft(tokens uint64) Option {
	return func(c *config) error {
		if tokens > 1000 {
			return fmt.Errorf("redislimit: Overdraft(%d): want 0 to 1,000", tokens)
		}
		c.overdraft = tokens
		return nil
	}
}

// OnLoss sets what happens while the store is lost; [FailShare] without it.
func OnLoss(p FailurePolicy) Option {
	return func(c *config) error {
		if p > FailOpen {
			return fmt.Errorf("redislimit: OnLoss(%d): want FailShare, FailClosed or FailOpen", p)
		}
		c.onLoss = p
		return nil
	}
}

// LocalShare sets which fraction of the limit a node admits with [FailShare] while it cannot reach the store, 1/[Nodes]
// without it; above 0, at most 1. Nodes that are cut off from a store that others reach admit their shares in addition
// to the whole limit. A smaller share makes that less.
func LocalShare(fraction float64) Option {
	return func(c *config) error {
		if !(fraction > 0 && fraction <= 1) {
			return fmt.Errorf("redislimit: LocalShare(%v): want above 0, at most 1", fraction)
		}
		c.fraction = fraction
		return nil
	}
}

// MaxKeys sets for how many keys, at most, a node keeps leases and shares, and remembers first requests and refusals;
// 100,000 without it, 1 to 2^31-1. For keys beyond that the store is asked for every request.
func MaxKeys(n int) Option {
	return func(c *config) error {
		if n < 1 || n > 1<<31-1 {
			return fmt.Errorf("redislimit: MaxKeys(%d): want 1 to 2^31-1", n)
		}
		c.maxKeys = n
		return nil
	}
}

// SharedName says that limiters with other numbers have the same name on purpose, for keys that are different ones. So
// the numbers of limiters of this name are not compared, within a node or with other nodes: see [Stats].
func SharedName() Option {
	return func(c *config) error {
		c.isShared = true
		return nil
	}
}

// maxTiers bounds [Tiers]. Each has a limiter of its own.
const maxTiers = 64

// Tiers adds policies for some requests, such as those of paying customers: see [limits.Tiered] and [Limiter.Source].
// The methods of the limiter decide by its own policy. The algorithm of a tier is that of the policy, and so is the
// window, but for token buckets; or it is [engine.Unlimited] or [engine.Blocked]. A key keeps what it has taken when it
// changes its tier, as a limit does when its numbers change. While the store is lost it has the share of each tier. At
// most 64 policies.
func Tiers(policies ...engine.Policy) Option {
	return func(c *config) error {
		if len(policies) > maxTiers {
			return fmt.Errorf("redislimit: Tiers: %d policies: want at most %d", len(policies), maxTiers)
		}
		c.tiers = slices.Clone(policies)
		return nil
	}
}
