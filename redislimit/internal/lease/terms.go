package lease

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/defaults"
)

const (
	ahead = 10 * time.Millisecond // τ
	life  = defaults.KeepEvery    // L: each lease is checked at the end of its life
)

// Terms are the numbers that all leases of a limit have in common.
type Terms struct {
	Limit     uint64        // the burst, or the tokens of a window
	PerSecond float64       // the rate of the limit on all nodes, in tokens per second
	Nodes     int           // how many nodes share the limit
	First     uint64        // the part of D that a node admits before it has a lease for the key
	Overdraft uint64        // the other part of D, which belongs to the lease; at most MaxDebt
	Ahead     time.Duration // τ: a renewal asks for the tokens of the next 2τ, and is made when half of them are left
	Life      time.Duration // L: how long tokens are kept, and the longest time for which a refusal is trusted
	// Random returns numbers in [0, 1), from any goroutine. If it is nil, math/rand/v2 is used.
	Random func() float64
}

// NewTerms returns the terms for leasing a limit. overdraft is the number of tokens for each node, D in the bound.
// NewTerms returns an error if leases do not suit the limit ([Suits]).
func NewTerms(p engine.Policy, nodes int, overdraft uint64) (*Terms, error) {
	if !Suits(p, nodes) {
		return nil, fmt.Errorf("leases do not suit %v with %d nodes: want a token bucket or a fixed window of %.0f/s "+
			"and a limit of %d at least, or Auto", p, nodes, 1/ahead.Seconds(), 4*nodes)
	}
	// The store can record a debt of at least one complete limit.
	if maxOverdraft := 2 * (p.Limit() / uint64(nodes)); overdraft > maxOverdraft {
		return nil, fmt.Errorf("Overdraft(%d): want at most %d, twice a node's share of %v", overdraft, maxOverdraft, p)
	}
	first := overdraft / 4
	return &Terms{
		Limit: p.Limit(), PerSecond: p.Rate().PerSecond(), Nodes: nodes,
		First: first, Overdraft: overdraft - first, Ahead: ahead, Life: life,
	}, nil
}

// Suits reports whether leases suit the limit. The limit must be a token bucket or a fixed window. Its rate must give
// at least one token in each τ, and its limit must be at least four tokens for each node.
func Suits(p engine.Policy, nodes int) bool {
	if _, _, isCalendar := p.Calendar(); isCalendar {
		return false // a budget per day needs few calls, and a lease would last only a moment
	}
	switch p.Algorithm() {
	case engine.AlgorithmTokenBucket, engine.AlgorithmFixedWindow:
		return p.Limit() >= 4*uint64(nodes) && p.Rate().PerSecond()*ahead.Seconds() >= 1
	}
	return false // other algorithms: a lease must know how many tokens come back in the store, and when
}

func (t *Terms) random() float64 {
	if t.Random == nil {
		return rand.Float64()
	}
	return t.Random()
}

// minRenewal returns the smallest number of tokens for which a renewal is worthwhile, if tokens are spent at the rate
// perSecond.
func (t *Terms) minRenewal(perSecond float64) uint64 {
	return t.clampTokens(perSecond * t.Ahead.Seconds())
}

// clampTokens returns n as a whole number of tokens: at least one and at most a quarter of the limit.
func (t *Terms) clampTokens(n float64) uint64 {
	maxTokens := min(t.Limit/4, MaxTokens/2)
	return max(uint64(min(math.Ceil(n), float64(maxTokens))), 1)
}

// Cap returns the largest number of tokens of one key that a node can have in hand. So O in the bound is at most Nodes
// * Cap.
func (t *Terms) Cap() uint64 { return max(2*min(t.Limit/4, MaxTokens/2), 1) }
