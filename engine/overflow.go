package engine

import (
	"fmt"

	"github.com/weir-go/weir/shard"
)

// An OverflowPolicy says what happens to a new key when all slots that could hold its record belong to keys that are
// not idle: see [Overflow].
type OverflowPolicy uint8

// The values equal those of [shard.Overflow].
const (
	// Evict forgets the record with the least debt in the probe window of the new key. [Stats] counts the eviction and
	// the tokens that it forgave. A drained key is evicted last. (Slots into which other goroutines insert a key at the
	// same moment are skipped.) This is the default.
	Evict OverflowPolicy = iota
	// Refuse refuses the new key, and counts it.
	Refuse
	// Admit admits the new key without keeping a record of it, and counts it.
	Admit
)

// String returns "evict", "refuse" or "admit".
func (p OverflowPolicy) String() string { return shard.Overflow(p).String() }

// Overflow sets what happens to a new key that finds no room: [Evict] (the default), [Refuse] or [Admit].
func Overflow(p OverflowPolicy) Option {
	return func(c *config) error {
		if p > Admit {
			return fmt.Errorf("engine: Overflow(%d): want engine.Evict, engine.Refuse or engine.Admit", p)
		}
		c.overflow = p
		return nil
	}
}
