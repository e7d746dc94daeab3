package sim

import (
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// leases is the strategy of leases, with the code of real nodes.
type leases struct {
	*transport
	terms       *lease.Terms
	store       *store
	shares      *localShares
	refusals    refusals
	phases      []int64
	firstTokens map[uint64]uint64 // tokens that a node admitted before it had a lease for the key
	numbers     map[uint64]uint32 // numbers of the nodes' leases
	leases      slots[*lease.Lease]
	asks        slots[leaseQuestion]
}

// A leaseQuestion is a lease's question that is on its way to the store or back.
type leaseQuestion struct {
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
		terms: terms, store: newStore(w.scenario), shares: newShares(w), refusals: refusals{},
		phases:      w.phases(int64(terms.Life)),
		firstTokens: map[uint64]uint64{}, numbers: map[uint64]uint32{},
	}
	s.transport = newTransport(w, s.handle, s.noteAnswer)
	return s
}

func (s *leases) arrive(node, key uint32, n uint64) {
	id := pair(node, key)
	number, ok := s.numbers[id]
	if !ok {
		if s.firstTokens[id]+n <= s.terms.First {
			s.firstTokens[id] += n
			s.admit(key, n)
			return
		}
		number = s.leases.put(lease.New(s.terms, s.firstTokens[id]))
		delete(s.firstTokens, id)
		s.numbers[id] = number
		s.scheduleCheck(node, key, number)
	}
	l := s.leases.values[number]
	before, _ := l.Balance()
	verdict, renew := l.Take(n, func() int64 { return s.clock(node) })
	switch verdict {
	case lease.Admitted:
		s.admit(key, n)
		after, _ := l.Balance()
		s.addHeld(key, int64(after)-int64(before))
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

func (s *leases) scheduleCheck(node, key, number uint32) {
	s.events.put(event{at: s.tick(s.phases[node], int64(s.terms.Life)), node: node, key: key, slot: number})
}

func (s *leases) request(node, key uint32, n uint64) {
	if s.refusals.refuses(node, key, n, s.now) {
		return
	}
	if !s.put(node, question{kind: leaseRequest, key: key, cost: n}) {
		s.shares.arrive(s.transport, node, key, n)
	}
}

// send sends a lease's question to the store, together with a request for n tokens, or none.
func (s *leases) send(node, key, number uint32, n uint64, ask script.Ask) {
	slot := s.asks.put(leaseQuestion{lease: number, ask: ask})
	if !s.put(node, question{key: key, slot: slot, cost: n}) {
		s.asks.drop(slot)
		s.leases.values[number].Fail(s.clock(node))
		if n > 0 {
			s.shares.arrive(s.transport, node, key, n)
		}
	}
}

func (s *leases) happen(e event) {
	if e.kind != 0 {
		s.transport.happen(e)
		return
	}
	if !s.isLost(e.node, e.key) && !s.isBusy(e.node, e.key) {
		l := s.leases.values[e.slot]
		settle, isRetired := l.Expire(s.clock(e.node))
		if settle {
			s.send(e.node, e.key, e.slot, 0, l.Settlement(s.clock(e.node)))
		}
		if isRetired {
			s.leases.drop(e.slot)
			delete(s.numbers, pair(e.node, e.key))
			return
		}
	}
	s.scheduleCheck(e.node, e.key, e.slot)
}

// handle handles a question that has reached the store.
func (s *leases) handle(_ uint32, q *question) {
	if q.kind != leaseRenewal {
		s.decide(s.store, q)
		return
	}
	pending := &s.asks.values[q.slot]
	if q.isComing { // the node has given it up
		defer s.asks.drop(q.slot)
	}
	if q.isLost {
		s.addHeld(q.key, -int64(pending.ask.Returned))
		return
	}
	pending.answer = s.store.ask(q.key, s.micros(), pending.ask)
	if q.isFailed { // the granted tokens are lost with the answer
		pending.answer.Granted = 0
	}
	// The returned tokens were held until now.
	s.addHeld(q.key, int64(pending.answer.Granted)-int64(pending.ask.Returned))
}

func (s *leases) noteAnswer(node uint32, q *question) {
	switch {
	case q.kind == shareCharge:
		s.shares.noteCharge(node, q)
		return
	case q.kind == leaseRequest && q.isFailed:
		s.shares.arrive(s.transport, node, q.key, q.cost)
		return
	case q.kind == leaseRequest:
		s.refusals.note(node, q)
		s.shares.charge(s.transport, node, q.key)
		return
	}
	done := s.asks.values[q.slot]
	if !q.isComing {
		s.asks.drop(q.slot)
	}
	l := s.leases.values[done.lease]
	if q.isFailed {
		if q.isLost {
			s.addHeld(q.key, -int64(done.ask.Returned))
		}
		l.Fail(s.clock(node))
		if q.cost > 0 {
			s.shares.arrive(s.transport, node, q.key, q.cost)
		}
		return
	}
	before, _ := l.Balance()
	granted := done.answer.Granted
	if l.Apply(done.answer, s.clock(node)) {
		s.admit(q.key, q.cost)
		s.addHeld(q.key, -int64(q.cost))
		granted -= q.cost
	}
	after, _ := l.Balance()
	s.addHeld(q.key, int64(after)-int64(before)-int64(granted)) // 0, unless more tokens were granted than fit
	s.shares.charge(s.transport, node, q.key)
}

// slots contains numbered values. Free numbers are reused.
type slots[T any] struct {
	values []T
	free   []uint32
}

func (s *slots[T]) put(v T) uint32 {
	if n := len(s.free); n > 0 {
		number := s.free[n-1]
		s.free = s.free[:n-1]
		s.values[number] = v
		return number
	}
	s.values = append(s.values, v)
	return uint32(len(s.values) - 1)
}

func (s *slots[T]) drop(number uint32) {
	var zero T
	s.values[number] = zero
	s.free = append(s.free, number)
}
