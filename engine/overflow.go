package engine

import (
	"fmt"

	"github.com/weir-go/weir/shard"
)

// An OverflowPolicy says what happens to a new key for which there is no room. [Overflow] sets it.
type OverflowPolicy uint8

// The values equal those of [shard.Overflow].
const (
	// Evict forgets the record with the least debt among the slots that the new key may use. So a key that has used up
	// its limit is evicted last. [Stats] counts the eviction and the tokens that it forgave. Slots into which other
	// goroutines insert a key at the same moment are skipped. This is the default.
	Evict OverflowPolicy = iota
	// Refuse refuses the new key, and counts it.
	Refuse
	// Admit admits the new key without keeping a record of it. [Stats] counts the request.
	Admit
)

// String returns "evict", "refuse" or "admit".
func (p OverflowPolicy) String() string { return shard.Overflow(p).String() }

// Overflow sets what happens to a new key if all slots that it may use belong to keys that are not idle: [Evict], which
// is the default, [Refuse] or [Admit].
func Overflow(p OverflowPolicy) Option {
	return func(c *config) error {
		if p > Admit {
			return fmt.Errorf("engine: Overflow(%d): want engine.Evict, engine.Refuse or engine.Admit", p)
		}
		c.overflow = p
		return nil
	}
}
