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

// leases runs the nodes' own code, package lease. The rest of a node is modelled: it sends what
// a lease asks for at once, asks the store itself about a request that the lease cannot decide, and
// takes that for refused if the answer is lost.
type leases struct {
	*world
	terms   lease.Terms
	refill  *refill
	buckets []bucket
	phases  []int64
	numbers map[uint64]uint32 // of the nodes' leases
	all     slots[*lease.Lease]
	asked   slots[call]
}

// A call is a question on its way to the store or back.
type call struct {
	lease  uint32
	ask    script.Ask
	answer script.Answer
}

const (
	leaseLook   = iota // at the node
	leaseReach         // at the store, with a lease's question
	leaseBack          // at the node
	leaseLost          // at the node
	leaseStrict        // at the store, with a request
)

func newLeases(w *world, terms lease.Terms) *leases {
	terms.Random = w.random.Float64
	return &leases{
		world: w, terms: terms, refill: newRefill(w.scenario).slowed(), buckets: make([]bucket, w.scenario.Keys),
		phases: w.phases(int64(lookEvery)), numbers: map[uint64]uint32{},
	}
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
		s.queue.put(event{at: s.now + s.way(), what: leaseStrict, node: node, key: key})
	}
	if renew {
		s.send(node, key, number, l.Renewal(s.clock(node)))
	}
}

// look has a lease looked at when the node next does.
func (s *leases) look(node, key, number uint32) {
	s.queue.put(event{at: s.tick(s.phases[node], int64(lookEvery)), what: leaseLook, node: node, key: key, slot: number})
}

func (s *leases) send(node, key, number uint32, ask script.Ask) {
	slot := s.asked.put(call{lease: number, ask: ask})
	s.queue.put(event{at: s.now + s.way(), what: leaseReach, node: node, key: key, slot: slot})
}

func (s *leases) happen(e event) {
	switch e.what {
	case leaseLook:
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
		s.look(e.node, e.key, e.slot)
	case leaseReach:
		s.called(e.key)
		c := &s.asked.at[e.slot]
		c.answer = s.refill.ask(&s.buckets[e.key], s.micros(), c.ask)
		e.at, e.what = s.now+s.way(), leaseBack
		if s.lost() { // and what was granted with it
			c.answer.Granted = 0
			e.at, e.what = s.now+int64(s.scenario.Timeout), leaseLost
		}
		s.hold(e.key, int64(c.answer.Granted)-int64(c.ask.Returned)) // what is given back was held until here
		s.queue.put(e)
	case leaseBack, leaseLost:
		c := s.asked.at[e.slot]
		s.asked.drop(e.slot)
		l := s.all.at[c.lease]
		if e.what == leaseLost {
			l.Fail(s.clock(e.node))
			return
		}
		before, _ := l.Held()
		l.Apply(c.answer, s.clock(e.node))
		after, _ := l.Held()
		s.hold(e.key, int64(after)-int64(before)-int64(c.answer.Granted)) // 0, unless more than fits
	case leaseStrict:
		s.called(e.key)
		if s.refill.take(&s.buckets[e.key], s.micros()) && !s.lost() {
			s.admit(e.key)
		}
	}
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
