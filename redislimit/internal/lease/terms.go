package lease

import (
	"math"
	"math/rand/v2"
	"time"
)

// Terms are what all leases of a limit have in common.
type Terms struct {
	Limit     uint64        // the burst, or the tokens of a window
	PerSecond float64       // the rate of the whole limit, tokens a second
	Nodes     int           // how many nodes share it
	Overdraft uint64        // D, at most MaxDebt
	Ahead     time.Duration // τ: a renewal is for twice this, and made when half of that is left
	Life      time.Duration // L: how long tokens are kept, and a refusal is believed at most
	// Random returns numbers in [0, 1), from any goroutine; nil means that of math/rand/v2.
	Random func() float64
}

func (t *Terms) random() float64 {
	if t.Random == nil {
		return rand.Float64()
	}
	return t.Random()
}

// Need returns the least that a renewal is worth making for, at a recent rate of so many tokens a second.
func (t *Terms) need(perSecond float64) uint64 {
	return t.bounded(perSecond * t.Ahead.Seconds())
}

// bounded returns n as whole tokens: at least one and at most a quarter of the limit.
func (t *Terms) bounded(n float64) uint64 {
	most := min(t.Limit/4, MaxTokens/2)
	return max(uint64(min(math.Ceil(n), float64(most))), 1)
}

// Cap is the most tokens that a node can have in hand of a key: so O is at most Nodes times it.
func (t *Terms) Cap() uint64 { return max(2*min(t.Limit/4, MaxTokens/2), 1) }

// Suits reports whether leases suit the limit. They do not suit one so small that a node's share is
// a handful of tokens: below four tokens a node, or a token in each τ.
func (t *Terms) Suits() bool {
	return t.Limit >= 4*uint64(t.Nodes) && t.PerSecond*t.Ahead.Seconds() >= 1
}
