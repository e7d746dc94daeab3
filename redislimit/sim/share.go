package sim

import (
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// localShares decide in the place of a store that gives no answer: every node admits its share of the limit, from a
// full bucket, or nothing, as the scenario says. The store is charged with it once it answers.
type localShares struct {
	*world
	limit    *script.Limit
	keys     map[uint64]*script.Model
	settling map[uint64]bool
}

// shareSettlement is a question that charges what a share admitted.
const shareSettlement uint8 = 100

func newShares(w *world) *localShares {
	return &localShares{
		world: w, limit: mustLimit(w.scenario.share()), keys: map[uint64]*script.Model{}, settling: map[uint64]bool{},
	}
}

// settle has the store charged, when it has answered the node about the key.
func (s *localShares) settle(t *transport, node, key uint32) {
	id := pair(node, key)
	m := s.keys[id]
	if m == nil || s.settling[id] {
		return
	}
	if owed := s.limit.Tokens() - m.Ask(s.limit, s.micros(), script.Ask{}).Remaining; owed > 0 {
		s.settling[id] = t.put(node, question{what: shareSettlement, key: key, debt: owed})
	}
}

// settled ends it.
func (s *localShares) settled(node uint32, q *question) {
	id := pair(node, q.key)
	s.settling[id] = false
	if !q.failed {
		s.keys[id].Ask(s.limit, s.micros(), script.Ask{Returned: q.debt})
	}
}

// arrive is a request that the store did not decide.
func (s *localShares) arrive(node, key uint32) {
	if s.scenario.OnFailure != redislimit.FailLocal {
		return
	}
	id := pair(node, key)
	m := s.keys[id]
	if m == nil {
		m = &script.Model{}
		s.keys[id] = m
	}
	if m.Ask(s.limit, s.micros(), script.Ask{Need: 1, Want: 1}).Granted == 1 {
		s.admit(key)
	}
}
