package sim

import (
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// leases is the strategy of leases, with the code of real nodes.
type leases struct {
	*transport
	terms   *lease.Terms
	store   *store
	shares  *localShares
	refused refusals
	phases  []int64
	first   map[uint64]uint64 // requests before a node had a lease for the key
	numbers map[uint64]uint32 // numbers of the nodes' leases
	all     slots[*lease.Lease]
	asks    slots[asking]
}

// An asking is a lease's question that is on its way to the store or back.
type asking struct {
	lease  uint32
	ask    script.Ask
	answer script.Answer
}

// The kinds of requests to the store.
const (
	leaseRenewal uint8 = iota // a renewal or a settlement
	leaseRequest
)

func newLeases(w *world) *leases {
	terms, err := lease.NewTerms(w.scenario.policy(), w.scenario.Nodes, w.scenario.Overdraft)
	if err != nil {
		panic(err) // impossible after Scenario.Check, for a limit that leases suit
	}
	terms.Random = w.random.Float64
	s := &leases{
		terms: terms, store: newStore(w.scenario), shares: newShares(w), refused: refusals{},
		phases: w.phases(int64(terms.Life)),
		first:  map[uint64]uint64{}, numbers: map[uint64]uint32{},
	}
	s.transport = newTransport(w, s.ask, s.answered)
	return s
}

func (s *leases) arrive(node, key uint32, n uint64) {
	id := pair(node, key)
	number, known := s.numbers[id]
	if !known {
		if s.first[id]+n <= s.terms.First {
			s.first[id] += n
			s.admit(key, n)
			return
		}
		number = s.all.put(lease.New(s.terms, s.first[id]))
		delete(s.first, id)
		s.numbers[id] = number
		s.look(node, key, number)
	}
	l := s.all.at[number]
	before, _ := l.Held()
	verdict, renew := l.Take(n, func() int64 { return s.clock(node) })
	switch verdict {
	case lease.Admitted:
		s.admit(key, n)
		after, _ := l.Held()
		s.hold(key, int64(after)-int64(before))
	case lease.Unknown:
		if renew {
			s.send(node, key, number, n, l.Renewal(s.clock(node), n, true))
		} else {
			s.request(node, key, n)
		}
		return
	case lease.Refused:
		if s.isLost(node, key) {
			s.request(node, key, n)
		}
	}
	if renew {
		s.send(node, key, number, 0, l.Renewal(s.clock(node), n, false))
	}
}

func (s *leases) look(node, key, number uint32) {
	s.events.put(event{at: s.tick(s.phases[node], int64(s.terms.Life)), node: node, key: key, slot: number})
}

func (s *leases) request(node, key uint32, n uint64) {
	if s.refused.has(node, key, n, s.now) {
		return
	}
	if !s.put(node, question{what: leaseRequest, key: key, cost: n}) {
		s.shares.arrive(s.transport, node, key, n)
	}
}

// send sends a lease's question to the store, together with a request for n tokens, or none.
func (s *leases) send(node, key, number uint32, n uint64, ask script.Ask) {
	slot := s.asks.put(asking{lease: number, ask: ask})
	if !s.put(node, question{key: key, slot: slot, cost: n}) {
		s.asks.drop(slot)
		s.all.at[number].Fail(s.clock(node))
		if n > 0 {
			s.shares.arrive(s.transport, node, key, n)
		}
	}
}

func (s *leases) happen(e event) {
	if e.what != 0 {
		s.transport.happen(e)
		return
	}
	if !s.isLost(e.node, e.key) && !s.isBusy(e.node, e.key) {
		l := s.all.at[e.slot]
		settle, gone := l.Expire(s.clock(e.node))
		if settle {
			s.send(e.node, e.key, e.slot, 0, l.Settlement(s.clock(e.node)))
		}
		if gone {
			s.all.drop(e.slot)
			delete(s.numbers, pair(e.node, e.key))
			return
		}
	}
	s.look(e.node, e.key, e.slot)
}

// ask handles a question that has reached the store.
func (s *leases) ask(_ uint32, q *question) {
	if q.what != leaseRenewal {
		s.decide(s.store, q)
		return
	}
	c := &s.asks.at[q.slot]
	if q.isComing { // the node has given it up
		defer s.asks.drop(q.slot)
	}
	if q.gone {
		s.hold(q.key, -int64(c.ask.Returned))
		return
	}
	c.answer = s.store.ask(q.key, s.micros(), c.ask)
	if q.failed { // the granted tokens are lost with the answer
		c.answer.Granted = 0
	}
	s.hold(q.key, int64(c.answer.Granted)-int64(c.ask.Returned)) // the returned tokens were held until now
}

func (s *leases) answered(node uint32, q *question) {
	switch {
	case q.what == shareCharge:
		s.shares.charged(node, q)
		return
	case q.what == leaseRequest && q.failed:
		s.shares.arrive(s.transport, node, q.key, q.cost)
		return
	case q.what == leaseRequest:
		s.refused.note(node, q)
		s.shares.charge(s.transport, node, q.key)
		return
	}
	c := s.asks.at[q.slot]
	if !q.isComing {
		s.asks.drop(q.slot)
	}
	l := s.all.at[c.lease]
	if q.failed {
		if q.gone {
			s.hold(q.key, -int64(c.ask.Returned))
		}
		l.Fail(s.clock(node))
		if q.cost > 0 {
			s.shares.arrive(s.transport, node, q.key, q.cost)
		}
		return
	}
	before, _ := l.Held()
	granted := c.answer.Granted
	if l.Apply(c.answer, s.clock(node)) {
		s.admit(q.key, q.cost)
		s.hold(q.key, -int64(q.cost))
		granted -= q.cost
	}
	after, _ := l.Held()
	s.hold(q.key, int64(after)-int64(before)-int64(granted)) // 0, unless more tokens were granted than fit
	s.shares.charge(s.transport, node, q.key)
}

// slots contains numbered values. Free numbers are reused.
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
