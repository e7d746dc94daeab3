package sim

import (
	"github.com/weir-go/weir/redislimit/internal/script"
)

// A store is the server's state for all keys of one limit. It decides by the model of the scripts.
type store struct {
	limit *script.Limit
	keys  []script.Model
}

func newStore(s *Scenario) *store {
	return &store{mustLimit(s.policy()), make([]script.Model, s.Keys)}
}

// ask returns the store's answer at the time now, in µs.
func (s *store) ask(key uint32, now int64, a script.Ask) script.Answer {
	return s.keys[key].Ask(s.limit, now, a)
}

func (s *store) take(key uint32, now int64, n uint64) bool {
	return s.ask(key, now, script.Ask{Need: n, Want: n}).Granted == n
}
