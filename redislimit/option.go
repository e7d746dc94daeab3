package redislimit

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// A Mode says whether the store or the node decides about a request.
type Mode uint8

const (
	// Auto is Leased if that suits the limit, otherwise Strict.
	Auto Mode = iota
	// Strict asks the store about every request, except for [TrustRefusals]. While the store answers, the limit is
	// exact.
	Strict
	// Leased lets the node spend tokens that the store has charged in advance.
	Leased
)

// String returns "auto", "strict" or "leased".
func (m Mode) String() string { return [...]string{"auto", "strict", "leased"}[m] }

// A FailurePolicy says what happens to requests while the store is lost.
type FailurePolicy uint8

const (
	// FailShare lets every node admit its share, which is the limit's rate and burst divided by the number of nodes. A
	// share starts full. But a share of less than one token starts empty when the store is lost. Otherwise all nodes
	// together would admit more than the limit.
	FailShare FailurePolicy = iota
	// FailClosed refuses the request and returns [ErrStore].
	FailClosed
	// FailOpen admits everything. With FailOpen, a store that answers but drops keys still decides.
	FailOpen
)

// String returns "share", "closed" or "open": the words of weir's rule file.
func (p FailurePolicy) String() string { return [...]string{"share", "closed", "open"}[p] }

// An Option changes one thing about a limiter.
type Option func(*config) error

type config struct {
	mode      Mode
	nodes     int
	overdraft uint64
	onLoss    FailurePolicy
	maxKeys   int
	trust     time.Duration
	fraction  float64 // the fraction of the limit that a share is; 0 for 1/nodes
	limit     script.Terms
	tiers     []engine.Policy
	isShared  bool   // limiters with other numbers, for other keys, have the same name
	debtFiles string // the beginning of the paths of the debt files; "" for none
}

func newConfig(name string, options []Option) (config, error) {
	c := config{nodes: defaults.Nodes, overdraft: defaults.Overdraft, maxKeys: defaults.MaxKeys, trust: defaults.Trust}
	for i, option := range options {
		if option == nil {
			return c, fmt.Errorf("redislimit: %s: option %d of %d is nil", name, i+1, len(options))
		}
		if err := option(&c); err != nil {
			return c, err
		}
	}
	if c.limit.Refusals != engine.ChargeNothing {
		c.trust = 0 // a refusal by the node would not be charged
	}
	return c, nil
}

// InMode sets the mode, [Auto] by default. With [Leased], [New] returns an error if leases do not suit the limit.
func InMode(m Mode) Option {
	return func(c *config) error {
		if m > Leased {
			return fmt.Errorf("redislimit: InMode(%d): want Auto, Strict or Leased", m)
		}
		c.mode = m
		return nil
	}
}

// Nodes sets how many nodes share the limit: 1 to 100,000, 4 by default. It need not be exact. It determines how large
// a share is, and from which limit on [Auto] chooses leases.
func Nodes(n int) Option {
	return func(c *config) error {
		if n < 1 || n > 100_000 {
			return fmt.Errorf("redislimit: Nodes(%d): want 1 to 100,000", n)
		}
		c.nodes = n
		return nil
	}
}

// Overdraft sets D, the number of tokens of a key that a node may admit before the store has charged them. D is 0 to
// 1,000, by default 8, and at most twice a node's share of the limit. A quarter of D is for a key's first requests,
// before the store is asked.
func Overdraft(tokens uint64) Option {
	return func(c *config) error {
		if tokens > 1000 {
			return fmt.Errorf("redislimit: Overdraft(%d): want 0 to 1,000", tokens)
		}
		c.overdraft = tokens
		return nil
	}
}

// OnLoss sets what happens while the store is lost. The default is [FailShare].
func OnLoss(p FailurePolicy) Option {
	return func(c *config) error {
		if p > FailOpen {
			return fmt.Errorf("redislimit: OnLoss(%d): want FailShare, FailClosed or FailOpen", p)
		}
		c.onLoss = p
		return nil
	}
}

// LocalShare sets the fraction of the limit that a node admits with [FailShare]: above 0 and at most 1, by default
// 1/[Nodes]. A smaller share can be useful because only some nodes may lose the store: they then admit their shares in
// addition to the complete limit.
func LocalShare(fraction float64) Option {
	return func(c *config) error {
		if !(fraction > 0 && fraction <= 1) {
			return fmt.Errorf("redislimit: LocalShare(%v): want above 0, at most 1", fraction)
		}
		c.fraction = fraction
		return nil
	}
}

// MaxKeys sets for how many keys a node keeps leases and shares, and remembers first requests and refusals: 1 to
// 2^31-1, 100,000 by default. The node asks the store about every request for further keys.
func MaxKeys(n int) Option {
	return func(c *config) error {
		if n < 1 || n > 1<<31-1 {
			return fmt.Errorf("redislimit: MaxKeys(%d): want 1 to 2^31-1", n)
		}
		c.maxKeys = n
		return nil
	}
}

// SharedName says that limiters of this name have different numbers on purpose, because their keys are different. So
// [Stats] does not compare their numbers.
func SharedName() Option {
	return func(c *config) error {
		c.isShared = true
		return nil
	}
}

const maxTiers = 64

// Tiers adds at most 64 policies for some requests, such as those of paying customers: see [limits.Tiered]. A tier has
// the same algorithm as the limiter's own policy. It has the same window, too, unless it is a token bucket. It may also
// be [engine.Unlimited] or [engine.Blocked]. If a key changes its tier, the tokens that it has taken still count. While
// the store is lost, a key has a separate share for each tier.
func Tiers(policies ...engine.Policy) Option {
	return func(c *config) error {
		if len(policies) > maxTiers {
			return fmt.Errorf("redislimit: Tiers: %d policies: want at most %d", len(policies), maxTiers)
		}
		c.tiers = slices.Clone(policies)
		return nil
	}
}
