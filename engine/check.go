package engine

import (
	"fmt"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

// Check returns the error that [New] would return for the numbers of the policy and of the tiers ([Tiers]), or nil if
// New would accept them. It keeps no memory.
func (p Policy) Check(tiers ...Policy) error {
	if err := checkTiers(tiers); err != nil {
		return err
	}
	_, err := policiesOf(p, tiers).plan(nil, terms{})
	return err
}

// Bytes returns how many bytes of memory a limiter takes that [New] makes with the policy and the options. The result
// equals [Stats].Bytes of such a limiter, if it is made on this machine with the same GOMAXPROCS. With [Shared] the
// result is the length of the file, on any machine. If New would refuse the arguments, Bytes returns an error. Bytes
// does not open the file, and does not check whether the machine has that much memory.
func Bytes(policy Policy, options ...Option) (uint64, error) {
	c, err := configured(options)
	if err != nil {
		return 0, err
	}
	plan, err := policiesOf(policy, c.tiers).plan(nil, c.terms)
	if err != nil {
		return 0, err
	}
	layout, header := c.table(plan), uint64(0)
	bytes, err := layout.Bytes()
	if c.shared != "" {
		header = sharedfile.HeaderBytes
		bytes, err = layout.SharedBytes()
	}
	if err != nil {
		return 0, fmt.Errorf("engine: MaxKeys(%d): %w", c.maxKeys, err)
	}
	return header + bytes, nil
}

// CheckChange returns the error that [Limiter.SetPolicy] would return for a change of a limiter's policies, or nil if
// the limiter would accept the change. The parameter from lists the policies with which the limiter was made, and the
// parameter to lists the policies after the change. Both lists name the limiter's own policy first, then the policies
// of its tiers. If the policies of the limiter have been changed before, the list from must still have the policies
// with which the limiter was made, not its current ones.
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

// In a shared table, the number of requests in flight, of all keys together, is bounded. The bound is a fixed number,
// plus one for every few slots.
const (
	spareEntries = atomicbucket.MaxInFlight + 1
	slotsToEntry = 4
)

// table returns the configuration of a table for a limiter with the configuration c and the given plan.
func (c *config) table(plan *shard.Plan) shard.Config {
	layout := shard.Config{
		Plan: plan, Slots: c.slots(), Shards: c.shardCount(), Overflow: shard.Overflow(c.overflow), Prefault: c.prefault,
	}
	if c.shared != "" && (c.inFlight || plan.InFlight()) {
		layout.Entries = min(spareEntries+c.slots()/slotsToEntry, atomicbucket.MaxEntries)
	}
	return layout
}
