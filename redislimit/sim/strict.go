package sim

import (
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// strict is the strategy in which nodes ask the store about every request. If an answer is lost, the node's share
// decides, although the store may have charged the request.
type strict struct {
	*transport
	store   *store
	shares  *localShares
	refused refusals
}

func newStrict(w *world) *strict {
	s := &strict{store: newStore(w.scenario), shares: newShares(w), refused: refusals{}}
	s.transport = newTransport(w, func(_ uint32, q *question) { s.decide(s.store, q) }, s.answered)
	return s
}

func (s *strict) arrive(node, key uint32, n uint64) {
	if s.refused.has(node, key, n, s.now) {
		return
	}
	if !s.put(node, question{key: key, cost: n}) {
		s.shares.arrive(s.transport, node, key, n)
	}
}

func (s *strict) answered(node uint32, q *question) {
	switch {
	case q.what == shareCharge:
		s.shares.charged(node, q)
	case q.failed:
		s.shares.arrive(s.transport, node, q.key, q.cost)
	default:
		s.refused.note(node, q)
		s.shares.charge(s.transport, node, q.key)
	}
}

// refusals has the store's refusals that nodes remember, as in package redislimit.
type refusals map[uint64]refusal

type refusal struct {
	need  uint64
	until int64
}

func (r refusals) has(node, key uint32, n uint64, now int64) bool {
	known, ok := r[pair(node, key)]
	return ok && n >= known.need && now < known.until
}

func (r refusals) note(node uint32, q *question) {
	id := pair(node, q.key)
	if old, known := r[id]; q.until > 0 && !(known && old.until > q.since && old.need < q.cost) {
		r[id] = refusal{q.cost, q.until}
	}
}

// decide makes the store decide the request that a question carries.
func (t *transport) decide(store *store, q *question) {
	if q.gone {
		return
	}
	if q.what == shareCharge {
		store.ask(q.key, t.micros(), script.Ask{Debt: q.debt})
		return
	}
	answer := store.ask(q.key, t.micros(), script.Ask{Need: q.cost, Want: q.cost})
	switch {
	case answer.Granted == 0:
		q.until = q.since + int64(min(answer.RetryAfter, defaults.Trust))
	case !q.failed:
		t.admit(q.key, q.cost)
	}
}
