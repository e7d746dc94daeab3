package engine

import (
	"fmt"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

// Check returns the error that [New] would return for the numbers of the policy and the [Tiers], or nil. It keeps no
// memory.
func (p Policy) Check(tiers ...Policy) error {
	if err := checkTiers(tiers); err != nil {
		return err
	}
	_, err := newPolicySet(p, tiers).plan(nil, terms{})
	return err
}

// Bytes returns how many bytes of memory [New] would allocate for a limiter with these arguments. [Stats].Bytes then
// has the same number, on this machine with the same GOMAXPROCS. With [Shared], Bytes returns the length of the file,
// on any machine. If New would refuse the arguments, Bytes returns an error, but it checks neither the file nor the
// machine's memory.
func Bytes(policy Policy, options ...Option) (uint64, error) {
	config, err := newConfig(options)
	if err != nil {
		return 0, err
	}
	plan, err := newPolicySet(policy, config.tiers).plan(nil, config.terms)
	if err != nil {
		return 0, err
	}
	layout, header := config.table(plan), uint64(0)
	bytes, err := layout.Bytes()
	if config.sharedPath != "" {
		header = sharedfile.HeaderBytes
		bytes, err = layout.SharedBytes()
	}
	if err != nil {
		return 0, fmt.Errorf("engine: MaxKeys(%d): %w", config.maxKeys, err)
	}
	return header + bytes, nil
}

// CheckChange returns the error that [Limiter.SetPolicy] would return for a change of policies, or nil. In both lists,
// the limiter's own policy is first, and its tiers follow. The first list has the policies with which [New] made the
// limiter, not the policies of a later SetPolicy. The second list has the policies after the change.
func CheckChange(from, to []Policy) error {
	if len(from) == 0 || len(to) == 0 {
		return fmt.Errorf("engine: CheckChange of %d policies to %d: want the limiter's own policy first", len(from),
			len(to))
	}
	if err := checkTiers(from[1:]); err != nil {
		return err
	}
	plan, err := newPolicySet(from[0], from[1:]).plan(nil, terms{})
	if err != nil {
		return err
	}
	after, err := newPolicySet(from[0], from[1:]).withPolicies(to)
	if err != nil {
		return err
	}
	_, err = after.plan(plan.Algorithm(), terms{})
	return err
}

// These constants bound the takes in flight of all keys of a shared table.
const (
	spareEntries = atomicbucket.MaxInFlight + 1
	slotsToEntry = 4
)

// table returns the configuration of the table for a limiter with this plan.
func (c *config) table(plan *shard.Plan) shard.Config {
	layout := shard.Config{
		Plan: plan, Slots: c.slots(), Shards: c.shardCount(), Overflow: shard.Overflow(c.overflow), Prefault: c.prefault,
	}
	if c.sharedPath != "" && (c.inFlight || plan.InFlight()) {
		layout.Entries = min(spareEntries+c.slots()/slotsToEntry, atomicbucket.MaxEntries)
	}
	return layout
}
