package engine

import (
	"fmt"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

// Check returns the error that [New] would return for the numbers of the policy, and of further [Tiers]; nil if
// they are good. Nothing is allocated that lasts.
func (p Policy) Check(tiers ...Policy) error {
	if err := checkTiers(tiers); err != nil {
		return err
	}
	_, err := policiesOf(p, tiers).plan(nil, terms{})
	return err
}

// Bytes returns how much memory a limiter of the policy would hold with [MaxKeys] of maxKeys. That is [Stats].Bytes of
// one that is made on this machine with the same GOMAXPROCS. Numbers that [New] refuses are errors. Bytes does not
// check whether the machine has that memory.
func (p Policy) Bytes(maxKeys int, tiers ...Policy) (uint64, error) {
	c := config{}
	if err := MaxKeys(maxKeys)(&c); err != nil {
		return 0, err
	}
	if err := checkTiers(tiers); err != nil {
		return 0, err
	}
	plan, err := policiesOf(p, tiers).plan(nil, terms{})
	if err != nil {
		return 0, err
	}
	bytes, err := c.table(plan).Bytes()
	if err != nil {
		return 0, fmt.Errorf("engine: MaxKeys(%d): %w", maxKeys, err)
	}
	return bytes, nil
}

// SharedBytes is Bytes of a limiter with [Shared]: how long its file is, on any machine. A [SlidingLog] has none, which
// is an error.
func (p Policy) SharedBytes(maxKeys int, tiers ...Policy) (uint64, error) {
	c := config{shared: "a file", terms: terms{shared: true}}
	if err := MaxKeys(maxKeys)(&c); err != nil {
		return 0, err
	}
	if err := checkTiers(tiers); err != nil {
		return 0, err
	}
	plan, err := policiesOf(p, tiers).plan(nil, c.terms)
	if err != nil {
		return 0, err
	}
	bytes, err := c.table(plan).SharedBytes()
	if err != nil {
		return 0, fmt.Errorf("engine: MaxKeys(%d): %w", maxKeys, err)
	}
	return sharedfile.HeaderBytes + bytes, nil
}

// CheckChange returns the error that [Limiter.SetPolicy] would return if a limiter that was made with the policies in
// from were given the policies in to. Both list the limiter's own policy first, then those of its tiers. nil means that
// the limiter accepts the change. If the policy of a limiter was changed before, from is still what it was made with.
func CheckChange(from, to []Policy) error {
	if len(from) == 0 || len(to) == 0 {
		return fmt.Errorf("engine: CheckChange of %d policies to %d: want the limiter's own policy first", len(from),
			len(to))
	}
	if err := checkTiers(from[1:]); err != nil {
		return err
	}
	plan, err := policiesOf(from[0], from[1:]).plan(nil, terms{})
	if err != nil {
		return err
	}
	after, err := policiesOf(from[0], from[1:]).changed(to)
	if err != nil {
		return err
	}
	_, err = after.plan(plan.Algorithm(), terms{})
	return err
}

// How many requests may be in flight in a shared table, of all keys: so many, and one for so many slots.
const (
	spareEntries = atomicbucket.MaxInFlight + 1
	slotsToEntry = 4
)

// table returns the configuration of the table of a limiter.
func (c *config) table(plan *shard.Plan) shard.Config {
	layout := shard.Config{
		Plan: plan, Slots: c.slots(), Shards: c.shardCount(), Overflow: shard.Overflow(c.overflow), Prefault: c.prefault,
	}
	if c.shared != "" && (c.inFlight || plan.InFlight()) {
		layout.Entries = min(spareEntries+c.slots()/slotsToEntry, atomicbucket.MaxEntries)
	}
	return layout
}
