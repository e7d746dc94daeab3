package sim

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/script"
)

// shares decide instead of a store that does not: every node admits its part of the limit, from a
// full bucket, or nothing, as the scenario says. The store is charged with it once it answers.
type shares struct {
	*world
	refill   *refill
	buckets  map[uint64]*bucket
	settling map[uint64]bool
}

// shareSettlement is a question that charges what a share admitted.
const shareSettlement uint8 = 100

func newShares(w *world) *shares {
	return &shares{world: w, refill: shareOf(w.scenario), buckets: map[uint64]*bucket{}, settling: map[uint64]bool{}}
}

// settle has the store charged, when it has answered the node about the key.
func (s *shares) settle(p *post, node, key uint32) {
	id := pair(node, key)
	b := s.buckets[id]
	if b == nil || s.settling[id] {
		return
	}
	s.refill.ask(b, s.micros(), script.Ask{})
	if owed := uint64((b.owed + s.refill.token - 1) / s.refill.token); owed > 0 {
		s.settling[id] = p.put(node, question{what: shareSettlement, key: key, debt: owed})
	}
}

// settled ends it.
func (s *shares) settled(node uint32, q *question) {
	id := pair(node, q.key)
	s.settling[id] = false
	if !q.failed {
		s.refill.ask(s.buckets[id], s.micros(), script.Ask{Returned: q.debt})
	}
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
