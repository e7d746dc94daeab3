package sim

import "github.com/weir-go/weir/redislimit/internal/script"

// strict asks the store about every request. A request whose answer is lost is up to the node's share, and the store
// has charged it.
type strict struct {
	*transport
	store  *store
	shares *localShares
}

func newStrict(w *world) *strict {
	s := &strict{store: newStore(w.scenario), shares: newShares(w)}
	s.transport = newTransport(w, func(_ uint32, q *question) { s.decide(s.store, q) }, s.answered)
	return s
}

func (s *strict) arrive(node, key uint32, n uint64) {
	if !s.put(node, question{key: key, cost: n}) {
		s.shares.arrive(node, key, n)
	}
}

func (s *strict) answered(node uint32, q *question) {
	switch {
	case q.what == shareSettlement:
		s.shares.settled(node, q)
	case q.failed:
		s.shares.arrive(node, q.key, q.cost)
	default:
		s.shares.settle(s.transport, node, q.key)
	}
}

// decide has the store decide about a request. A caller gives up when the timeout is over, however long of that the
// question did not travel.
func (t *transport) decide(store *store, q *question) {
	if q.what == shareSettlement {
		store.ask(q.key, t.micros(), script.Ask{Debt: q.debt})
		return
	}
	if t.now-q.since > int64(t.scenario.Timeout) {
		q.failed = true
	}
	if store.take(q.key, t.micros(), q.cost) && !q.failed {
		t.admit(q.key, q.cost)
	}
}
