package sim

import (
	"math"

	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// localShares decides requests when the store does not answer: depending on the scenario, every node admits its share,
// or nothing.
type localShares struct {
	*world
	limit *script.Limit
	keys  map[uint64]*script.Model
	debts *shares.Debts[uint64]
	slow  *shares.Slow[uint64]
}

// shareCharge is the kind of a question that charges the tokens of a share.
const shareCharge uint8 = 100

func newShares(w *world) *localShares {
	return &localShares{
		world: w, limit: mustLimit(w.scenario.share()), keys: map[uint64]*script.Model{},
		debts: shares.NewDebts[uint64](math.MaxInt, nil), slow: shares.NewSlow[uint64](math.MaxInt),
	}
}

// charge sends the debt of a key to the store, after the store has answered the node.
func (s *localShares) charge(t *transport, node, key uint32) {
	id := pair(node, key)
	owed := s.debts.Begin(id)
	if owed > 0 && !t.put(node, question{kind: shareCharge, key: key, debt: owed}) {
		s.debts.End(id, false)
	}
}

func (s *localShares) noteCharge(node uint32, q *question) {
	s.debts.End(pair(node, q.key), !q.isFailed)
}

func (s *localShares) arrive(t *transport, node, key uint32, n uint64) {
	if s.scenario.OnLoss != redislimit.FailShare {
		return
	}
	id := pair(node, key)
	m := s.keys[id]
	if m == nil {
		m = &script.Model{}
		s.keys[id] = m
	}
	take := func() bool {
		allowed := m.Ask(s.limit, s.micros(), script.Ask{Need: n, Want: n}).Granted == n
		if allowed {
			s.admit(key, n)
			s.debts.Add(id, n)
		}
		return allowed
	}
	interval := shares.Interval(s.scenario.policy(), float64(s.scenario.Nodes))
	if interval == 0 || n > 1 {
		take()
	} else if since, lost := t.queueOf(node, key).LostSince(); lost {
		s.slow.Take(id, since, t.now, interval, take)
	}
}
