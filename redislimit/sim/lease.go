package sim

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// The times of the nodes, by default.
const (
	ahead     = 10 * time.Millisecond
	life      = 100 * time.Millisecond
	lookEvery = life / 2 // at all leases of a node, for those to end
)

// leases runs the nodes' own code, package lease. The rest of a node is modelled: what a lease asks
// for goes by the post, and so does a request that the lease cannot decide. One whose answer is lost is up to the
// node's share.
type leases struct {
	*post
	terms   lease.Terms
	refill  *refill
	buckets []bucket
	shares  *shares
	phases  []int64
	numbers map[uint64]uint32 // of the nodes' leases
	all     slots[*lease.Lease]
	asks    slots[asking]
}

// An asking is a lease's question on its way to the store or back.
type asking struct {
	lease  uint32
	ask    script.Ask
	answer script.Answer
}

// What questions are.
const (
	leaseRenewal uint8 = iota // or a settlement
	leaseRequest
)

func newLeases(w *world, terms lease.Terms) *leases {
	terms.Random = w.random.Float64
	s := &leases{
		terms: terms, refill: newRefill(w.scenario).slowed(), buckets: make([]bucket, w.scenario.Keys), shares: newShares(w),
		phases: w.phases(int64(lookEvery)), numbers: map[uint64]uint32{},
	}
	s.post = newPost(w, s.ask, s.answered)
	return s
}

// leaseTerms are those of the scenario.
func leaseTerms(s *Scenario) lease.Terms {
	perSecond := s.perMicrosecond() * 1e6 * (slowing - 1) / slowing
	return lease.Terms{Limit: s.Burst, PerSecond: perSecond, Nodes: s.Nodes, Overdraft: s.Overdraft, Ahead: ahead, Life: life}
}

func (s *leases) arrive(node, key uint32) {
	id := pair(node, key)
	number, known := s.numbers[id]
	if !known {
		number = s.all.put(lease.New(&s.terms, 0))
		s.numbers[id] = number
		s.look(node, key, number)
	}
	l := s.all.at[number]
	before, _ := l.Held()
	verdict, renew := l.Take(1, func() int64 { return s.clock(node) })
	switch verdict {
	case lease.Admitted:
		s.admit(key)
		after, _ := l.Held()
		s.hold(key, int64(after)-int64(before))
	case lease.Unknown:
		s.request(node, key)
	case lease.Refused:
		if s.isLost(node) {
			s.request(node, key)
		}
	}
	if renew {
		s.send(node, key, number, l.Renewal(s.clock(node)))
	}
}

// look has a lease looked at when the node next does.
func (s *leases) look(node, key, number uint32) {
	s.queue.put(event{at: s.tick(s.phases[node], int64(lookEvery)), node: node, key: key, slot: number})
}

// request asks the store about a request.
func (s *leases) request(node, key uint32) {
	if !s.put(node, question{what: leaseRequest, key: key}) {
		s.shares.arrive(node, key)
	}
}

// send asks the store what a lease wants to know.
func (s *leases) send(node, key, number uint32, ask script.Ask) {
	slot := s.asks.put(asking{lease: number, ask: ask})
	if !s.put(node, question{key: key, slot: slot}) {
		s.asks.drop(slot)
		s.all.at[number].Fail(s.clock(node))
	}
}

// happen is a node that looks at a lease, or a call.
func (s *leases) happen(e event) {
	if e.what != 0 {
		s.post.happen(e)
		return
	}
	if !s.isLost(e.node) && !s.isBusy(e.node) {
		l := s.all.at[e.slot]
		settle, gone := l.Expire(s.clock(e.node))
		if settle {
			s.send(e.node, e.key, e.slot, l.Settlement(s.clock(e.node)))
		}
		if gone {
			s.all.drop(e.slot)
			delete(s.numbers, pair(e.node, e.key))
			return
		}
	}
	s.look(e.node, e.key, e.slot)
}

// ask is a question at the store.
func (s *leases) ask(_ uint32, q *question) {
	if q.what != leaseRenewal {
		s.decide(s.refill, s.buckets, q)
		return
	}
	c := &s.asks.at[q.slot]
	c.answer = s.refill.ask(&s.buckets[q.key], s.micros(), c.ask)
	if q.failed { // and what was granted with it
		c.answer.Granted = 0
	}
	s.hold(q.key, int64(c.answer.Granted)-int64(c.ask.Returned)) // what is given back was held until here
}

// answered is the end of it, at the node.
func (s *leases) answered(node uint32, q *question) {
	switch {
	case q.what == shareSettlement:
		s.shares.settled(node, q)
		return
	case q.what == leaseRequest && q.failed:
		s.shares.arrive(node, q.key)
		return
	case q.what == leaseRequest:
		s.shares.settle(s.post, node, q.key)
		return
	}
	c := s.asks.at[q.slot]
	s.asks.drop(q.slot)
	l := s.all.at[c.lease]
	if q.failed {
		if q.gone {
			s.hold(q.key, -int64(c.ask.Returned))
		}
		l.Fail(s.clock(node))
		return
	}
	before, _ := l.Held()
	l.Apply(c.answer, s.clock(node))
	after, _ := l.Held()
	s.hold(q.key, int64(after)-int64(before)-int64(c.answer.Granted)) // 0, unless more than fits
	s.shares.settle(s.post, node, q.key)
}

// slots are numbered things, whose numbers are used again.
type slots[T any] struct {
	at   []T
	free []uint32
}

func (s *slots[T]) put(v T) uint32 {
	if n := len(s.free); n > 0 {
		number := s.free[n-1]
		s.free = s.free[:n-1]
		s.at[number] = v
		return number
	}
	s.at = append(s.at, v)
	return uint32(len(s.at) - 1)
}

func (s *slots[T]) drop(number uint32) {
	var none T
	s.at[number] = none
	s.free = append(s.free, number)
}
