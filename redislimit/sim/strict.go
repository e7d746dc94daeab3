package sim

import (
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// strict is the strategy in which nodes ask the store about every request. If an answer is lost, the node's share
// decides, although the store may have charged the request.
type strict struct {
	*transport
	store    *store
	shares   *localShares
	refusals refusals
}

func newStrict(w *world) *strict {
	s := &strict{store: newStore(w.scenario), shares: newShares(w), refusals: refusals{}}
	s.transport = newTransport(w, func(_ uint32, q *question) { s.decide(s.store, q) }, s.noteAnswer)
	return s
}

func (s *strict) arrive(node, key uint32, n uint64) {
	if s.refusals.refuses(node, key, n, s.now) {
		return
	}
	if !s.put(node, question{key: key, cost: n}) {
		s.shares.arrive(s.transport, node, key, n)
	}
}

func (s *strict) noteAnswer(node uint32, q *question) {
	switch {
	case q.kind == shareCharge:
		s.shares.noteCharge(node, q)
	case q.isFailed:
		s.shares.arrive(s.transport, node, q.key, q.cost)
	default:
		s.refusals.note(node, q)
		s.shares.charge(s.transport, node, q.key)
	}
}

// refusals has the store's refusals that nodes remember, as in package redislimit.
type refusals map[uint64]refusal

type refusal struct {
	need  uint64
	until int64
}

func (r refusals) refuses(node, key uint32, n uint64, now int64) bool {
	old, ok := r[pair(node, key)]
	return ok && n >= old.need && now < old.until
}

func (r refusals) note(node uint32, q *question) {
	id := pair(node, q.key)
	if old, ok := r[id]; q.refusedUntil > 0 && !(ok && old.until > q.since && old.need < q.cost) {
		r[id] = refusal{q.cost, q.refusedUntil}
	}
}

// decide makes the store decide the request that a question carries.
func (t *transport) decide(store *store, q *question) {
	if q.isLost {
		return
	}
	if q.kind == shareCharge {
		store.ask(q.key, t.micros(), script.Ask{Debt: q.debt})
		return
	}
	answer := store.ask(q.key, t.micros(), script.Ask{Need: q.cost, Want: q.cost})
	switch {
	case answer.Granted == 0:
		q.refusedUntil = q.since + int64(min(answer.RetryAfter, defaults.Trust))
	case !q.isFailed:
		t.admit(q.key, q.cost)
	}
}
