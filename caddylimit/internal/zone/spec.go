package zone

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
	"github.com/weir-go/weir/redislimit"
)

// A Spec contains the settings of a zone in a configuration. Specs are compared by ==.
type Spec struct {
	Policy engine.Policy
	// Tiers are the policies for [engine.Tiers]. The first zero Policy ends the list.
	Tiers [maxTiers]engine.Policy
	// MaxKeys is the number of keys for which the limiter has room. 0 stands for [DefaultMaxKeys], or for
	// [DefaultLogKeys] if the limit is a sliding log. The default is lower if [TableBytes] is too small for it.
	MaxKeys  int
	Overflow engine.OverflowPolicy
	// Sweep is the time between two sweeps of the limiter; 0 stands for the default of package engine.
	Sweep time.Duration
	// State is the file in which all processes of this machine count together. "" stands for a limit in this process.
	State string
	// Store is the address of a store of package redislimit. "" stands for a limit in this process.
	Store string
	// OnLoss is the failure policy, which decides requests while the store is lost.
	OnLoss redislimit.FailurePolicy
	// Nodes is how many machines share the store. Share is the percentage of the limit that this machine admits while
	// the store is lost. 0 stands for the default of package redislimit.
	Nodes, Share int
	// Timeout is how long a request waits for the store; 0 stands for the default of package redislimit.
	Timeout time.Duration
	// Debts is the beginning of the paths of this machine's debts to the store ([redislimit.DebtFiles]), or "".
	Debts string
}

const maxTiers = 14

// SetTiers sets the tiers. It returns an error for more than 14.
func (s *Spec) SetTiers(tiers []engine.Policy) error {
	if len(tiers) > maxTiers {
		return fmt.Errorf("%d tiers: want at most %d", len(tiers), maxTiers)
	}
	copy(s.Tiers[:], tiers)
	return nil
}

func (s *Spec) tiers() []engine.Policy {
	n := slices.Index(s.Tiers[:], engine.Policy{})
	if n < 0 {
		n = maxTiers
	}
	return s.Tiers[:n]
}

func (s *Spec) policies() []engine.Policy { return append([]engine.Policy{s.Policy}, s.tiers()...) }

// Largest returns the largest limit among the policy and the tiers.
func (s *Spec) Largest() (largest uint64) {
	for _, p := range s.policies() {
		largest = max(largest, p.Limit())
	}
	return largest
}

// InProcess returns the spec without a store.
func (s Spec) InProcess() Spec {
	s.Store, s.OnLoss, s.Nodes, s.Share, s.Timeout, s.Debts = "", 0, 0, 0, 0, ""
	return s
}

const (
	// DefaultMaxKeys is the default number of keys of a zone. DefaultLogKeys is the default for a sliding log, because
	// each of its keys also has a ring.
	DefaultMaxKeys = 1_000_000
	DefaultLogKeys = 100_000
	// TableBytes is the size of the largest table of a zone without MaxKeys. Only a sliding log's table can become that
	// large.
	TableBytes = 256 << 20
)

// Keys returns the number of keys for which the limiter of the spec has room.
func (s Spec) Keys() (int, error) {
	if s.MaxKeys != 0 {
		if s.MaxKeys < 1 || s.MaxKeys > 1<<31-1 {
			return 0, fmt.Errorf("max_keys %d: want 1 to 2147483647", s.MaxKeys)
		}
		return s.MaxKeys, nil
	}
	keys := DefaultMaxKeys
	if spec.Logs(s.Policy.Algorithm()) {
		keys = DefaultLogKeys
	}
	bytes, err := engine.Bytes(s.Policy, engine.MaxKeys(keys), engine.Tiers(s.tiers()...))
	if err != nil || bytes <= TableBytes {
		return keys, err
	}
	// The number of bytes of a table is proportional to the number of keys.
	return int(float64(keys) * TableBytes / float64(bytes)), nil
}

// check returns an error if the spec has a mistake that can be found without making a limiter.
func (s Spec) check(name string) error {
	if s.Sweep != 0 && (s.Sweep < time.Millisecond || s.Sweep > 24*time.Hour) {
		return fmt.Errorf("sweep_interval %v: want 1ms to 24h", s.Sweep)
	}
	if err := s.Policy.Check(s.tiers()...); err != nil {
		return err
	}
	if s.Store == "" {
		_, err := s.Keys()
		return err
	}
	if s.Overflow != engine.Evict {
		return fmt.Errorf("overflow %v: a store has room for every key: leave overflow or the store out", s.Overflow)
	}
	return redislimit.Check(name, s.Policy, s.storeOptions()...)
}

// InStore returns the function [spec.Limit].InStore for a zone with quotas, or nil if the zone is not in a store.
func (s Spec) InStore(name string) func(engine.Policy, uint64) (func(engine.Policy) error, func(), error) {
	if s.Store == "" {
		return nil
	}
	return func(base engine.Policy, _ uint64) (func(engine.Policy) error, func(), error) {
		return redislimit.CheckQuotas(name, base, s.storeOptions()...)
	}
}

func (s Spec) storeOptions() []redislimit.Option {
	options := []redislimit.Option{redislimit.OnLoss(s.OnLoss), redislimit.Tiers(s.tiers()...)}
	if s.MaxKeys != 0 {
		options = append(options, redislimit.MaxKeys(s.MaxKeys))
	}
	if s.Nodes != 0 {
		options = append(options, redislimit.Nodes(s.Nodes))
	}
	if s.Share != 0 {
		options = append(options, redislimit.LocalShare(float64(s.Share)/100))
	}
	if s.Debts != "" {
		options = append(options, redislimit.DebtFiles(s.Debts))
	}
	return options
}

func (s Spec) limiter() (*engine.Limiter, error) {
	keys, err := s.Keys()
	if err != nil {
		return nil, err
	}
	options := []engine.Option{engine.MaxKeys(keys), engine.Overflow(s.Overflow), engine.Tiers(s.tiers()...)}
	if s.Sweep != 0 {
		options = append(options, engine.SweepInterval(s.Sweep))
	}
	if s.State != "" {
		return s.sharedLimiter(options)
	}
	return engine.New(s.Policy, options...)
}

// follows reports whether a limiter can be changed to the spec s. The limiter was made with the spec original.
func (s Spec) follows(original Spec) bool {
	if original.Store != "" {
		return s == original
	}
	policies := s.policies()
	s.Policy, s.Tiers, s.Sweep = original.Policy, original.Tiers, original.Sweep // a sweep does not affect decisions
	return s == original && engine.CheckChange(original.policies(), policies) == nil
}

// String returns a description of the limit.
func (s Spec) String() string {
	text := s.Policy.String()
	for i, tier := range s.tiers() {
		text += fmt.Sprintf(", tier %d %v", i+1, tier)
	}
	if s.MaxKeys != 0 {
		text += fmt.Sprintf(", max_keys %d", s.MaxKeys)
	}
	if s.Overflow != engine.Evict {
		text += fmt.Sprintf(", overflow %v", s.Overflow)
	}
	if s.State != "" {
		text += ", in the file " + s.State
	}
	if s.Store != "" {
		text += fmt.Sprintf(", in a store, on_loss %v", s.OnLoss)
		if s.Nodes != 0 {
			text += fmt.Sprintf(", nodes %d", s.Nodes)
		}
		if s.Share != 0 {
			text += fmt.Sprintf(", share %d%%", s.Share)
		}
		if s.Timeout != 0 {
			text += fmt.Sprintf(", timeout %v", s.Timeout)
		}
		if s.Debts != "" {
			text += ", what it is owed in " + s.Debts
		}
	}
	return text
}
