package engine

import (
	"fmt"

	"github.com/weir-go/weir/shard"
)

// An OverflowPolicy says what happens to a new key when all slots in which its
// record could be are taken by keys that are not idle: see [Overflow].
type OverflowPolicy uint8

// The values are those of [shard.Overflow].
const (
	// Evict forgets the record of the probe window with the least debt
	// and counts it, with the tokens thereby forgiven, in [Stats]. A drained key
	// is the last to go. (Slots in which other goroutines insert a key at that very moment
	// do not count.) This is the default.
	Evict OverflowPolicy = iota
	// Refuse refuses the new key, and counts it.
	Refuse
	// Admit admits the new key without keeping a record of it, and counts it.
	Admit
)

// String returns "evict", "refuse" or "admit".
func (p OverflowPolicy) String() string { return shard.Overflow(p).String() }

// Overflow sets what happens to a new key that finds no room: [Evict], [Refuse] or
// [Admit].
func Overflow(p OverflowPolicy) Option {
	return func(c *config) error {
		if p > Admit {
			return fmt.Errorf("engine: Overflow(%d): want engine.Evict, engine.Refuse or engine.Admit", p)
		}
		c.overflow = p
		return nil
	}
}
