package sim

import "time"

// shares decide instead of a store that does not: every node admits its part of the limit, from a
// full bucket, or nothing, as the scenario says.
type shares struct {
	*world
	refill  *refill
	buckets map[uint64]*bucket
}

func newShares(w *world) *shares {
	return &shares{world: w, refill: shareOf(w.scenario), buckets: map[uint64]*bucket{}}
}

// shareOf returns how the bucket of one node fills.
func shareOf(s *Scenario) *refill {
	token := int64(s.Rate.Period()/time.Microsecond) * int64(s.Nodes)
	return &refill{token: token, back: int64(s.Rate.Tokens()), full: int64(s.shareBurst()) * token}
}

// shareBurst is the bucket of one node.
func (s *Scenario) shareBurst() uint64 { return max(s.Burst/uint64(s.Nodes), 1) }

func (s *shares) arrive(node, key uint32) {
	if !s.scenario.Share {
		return
	}
	id := pair(node, key)
	b := s.buckets[id]
	if b == nil {
		b = &bucket{}
		s.buckets[id] = b
	}
	if s.refill.take(b, s.micros()) {
		s.admit(key)
	}
}
