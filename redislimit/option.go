package redislimit

import "fmt"

// A Mode says who decides.
type Mode uint8

const (
	// Auto is leases where they suit the limit, and else strict.
	Auto Mode = iota
	// Strict asks the store for every request. Nothing is over-admitted.
	Strict
	// Leased spends tokens on the node that the store has charged in advance.
	Leased
)

// String returns "auto", "strict" or "leased".
func (m Mode) String() string { return [...]string{"auto", "strict", "leased"}[m] }

// A LossPolicy says what happens to requests while the store is lost.
type LossPolicy uint8

const (
	// Share has every node admit its share: the limit divided by the number of nodes, from a full bucket.
	Share LossPolicy = iota
	// Closed answers an error, which is ErrStore, and a refusal.
	Closed
	// Admit admits everything.
	Admit
)

// String returns "share", "closed" or "open".
func (p LossPolicy) String() string { return [...]string{"share", "closed", "open"}[p] }

// An Option changes one thing about a limiter at [New].
type Option func(*config) error

type config struct {
	mode      Mode
	nodes     int
	overdraft uint64
	loss      LossPolicy
	maxKeys   int
}

// InMode sets who decides; [Auto] without it. [Leased] for a limit that leases do not suit is an error of
// New.
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
// 0 to 1,000 and at most twice a node's share of the limit. A quarter of it is for the first requests of a key, which go without asking.
func Overdraft(tokens uint64) Option {
	return func(c *config) error {
		if tokens > 1000 {
			return fmt.Errorf("redislimit: Overdraft(%d): want 0 to 1,000", tokens)
		}
		c.overdraft = tokens
		return nil
	}
}

// OnLoss sets what happens while the store is lost; [Share] without it.
func OnLoss(p LossPolicy) Option {
	return func(c *config) error {
		if p > Admit {
			return fmt.Errorf("redislimit: OnLoss(%d): want Share, Closed or Admit", p)
		}
		c.loss = p
		return nil
	}
}

// MaxKeys sets how many keys a node has leases of at most, and remembers the first requests and the share
// of; 100,000 without it, 1 to 2^31-1. Of more keys the store is asked for every request.
func MaxKeys(n int) Option {
	return func(c *config) error {
		if n < 1 || n > 1<<31-1 {
			return fmt.Errorf("redislimit: MaxKeys(%d): want 1 to 2^31-1", n)
		}
		c.maxKeys = n
		return nil
	}
}
