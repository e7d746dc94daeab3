package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/weir-go/weir/shard"
)

// A Limiter applies one [Policy] to each of any number of keys. Make one with [New]. All its methods are safe for
// concurrent use. The methods that decide are lock-free and do not allocate.
//
// The methods of a nil or zero Limiter panic with a message that names New. Allow, Take and their variants may panic
// without this message, because a check would cost every decision an instruction. For a nil Limiter, so may the methods
// that make a [Key].
type Limiter struct {
	table *shard.Table
	clock *clock

	seeded     bool       // keys are made with the seeded hash; false in a zero Limiter
	secrets    *secrets   // if not nil, keys are made with the secret of a shared table
	observer   *observer  // nil if there is none
	policyMu   sync.Mutex // SetPolicy locks it
	terms      terms
	background *background
	lines      lines // of the callers that wait

	id uint64 // a random number of this limiter in this process: see Receipt.Append
}

// A policySet has the policies of a limiter, and what keys may still owe under its earlier policies and quotas. Tier 0
// is the limiter's own policy.
type policySet struct {
	base    Policy   // the latest policy of tier 0 other than Unlimited or Blocked, if there was one
	byTier  []Policy // the policy of each tier
	bases   []Policy // like base, for each tier
	highest []uint64 // the highest limit that each tier ever had: keys may have used that many tokens

	quotaDebt uint64 // the most that keys may owe under quotas, in the unit of capacity; for windows 0 or anyQuota

	longestWindow time.Duration // the longest window ever
	maxEstimate   uint64        // the highest estimate of a sliding window, rounded up, at a change of its length
}

func (l *Limiter) policies() *policySet { return l.table.Plan().Source().(*policySet) }

func newPolicySet(policy Policy, tiers []Policy) policySet {
	byTier := append([]Policy{policy}, tiers...)
	s := policySet{base: policy, byTier: byTier, bases: byTier, highest: make([]uint64, len(byTier)), longestWindow: policy.window}
	for i, p := range byTier {
		s.highest[i] = p.limit
	}
	return s
}

// New returns a limiter with the policy. Every bucket is full. New allocates all memory that the limiter's table ever
// needs; [Stats] reports how much.
//
// A limiter sweeps in the background until Close, or until the garbage collector finds that the limiter was dropped. In
// a testing/synctest bubble, close the limiter before the bubble ends.
//
// New returns an error for a number out of range, a nil option, or a table larger than the machine's memory. The error
// names the value and the range.
func New(policy Policy, options ...Option) (*Limiter, error) {
	config, err := newConfig(options)
	if err != nil {
		return nil, err
	}
	clock, err := newClock(config.clock, config.read)
	if err != nil {
		return nil, err
	}
	config.terms.lateness = clock.lateness()
	if config.replacePolicy && config.sharedPath == "" {
		return nil, errors.New("engine: ReplacePolicy without Shared: want both, or a limiter of one's own")
	}
	policies := newPolicySet(policy, config.tiers)
	plan, err := policies.plan(nil, config.terms)
	if err != nil {
		return nil, err
	}
	layout := config.table(plan)
	layout.Start, layout.Now = clock.nanos(), clock.latest
	var table *shard.Table
	var secrets *secrets
	if config.sharedPath != "" {
		table, secrets, err = config.attach(layout, clock, policies)
	} else if table, err = shard.New(layout); err != nil {
		err = fmt.Errorf("engine: MaxKeys(%d): %w", config.maxKeys, err)
	}
	if err != nil {
		return nil, err
	}
	l := &Limiter{
		table:      table,
		clock:      clock,
		seeded:     !config.stableHash && config.sharedPath == "",
		secrets:    secrets,
		observer:   config.observer,
		terms:      config.terms,
		background: &background{table: table, clock: clock, interval: config.interval, file: config.file},
		id:         max(rand.Uint64(), 1),
	}
	l.background.start()
	runtime.AddCleanup(l, (*background).halt, l.background)
	return l, nil
}

func newConfig(options []Option) (config, error) {
	c := config{maxKeys: DefaultMaxKeys, interval: DefaultSweepInterval}
	for i, option := range options {
		if option == nil {
			return config{}, fmt.Errorf("engine: option %d of %d is nil", i+1, len(options))
		}
		if err := option(&c); err != nil {
			return config{}, err
		}
	}
	return c, nil
}

// Close stops the sweeper and waits until it has stopped. The limiter still decides correctly afterwards, but no longer
// counts live keys. A coarse clock then becomes exact. A second Close does nothing. The error is always nil; it exists
// for io.Closer.
func (l *Limiter) Close() error {
	l.requireMade()
	l.background.halt()
	l.background.running.Wait()
	return nil
}

// Sweep forgets every key whose bucket is full, and brings [Stats] up to date, in the caller's goroutine. The
// background sweeper does the same from time to time. Sweep takes some nanoseconds for each slot.
func (l *Limiter) Sweep() {
	l.requireMade()
	l.table.Sweep(l.clock.nanos(), nil)
	l.background.checkFile()
}

// requireMade panics if New did not make the limiter.
func (l *Limiter) requireMade() {
	if l == nil || l.table == nil {
		panic("engine: a Limiter that is nil or zero: make it with engine.New, and look at New's error")
	}
}
