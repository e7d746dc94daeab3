package redislimit

import (
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// A share is a node's part of a limit, which decides where the store does not answer. All that it admits is owed to
// the store, and charged when the store answers again. The share itself comes back by its own rate alone. So over
// any time the shares of all nodes admit one limit at most, and the store never lets more through beside them
// than comes back while some nodes have noticed its return and others have not.
type share struct {
	*engine.Limiter
	owed *shares.Debts[string]
}

func newShare(part engine.Policy, maxKeys int) (*share, error) {
	l, err := engine.New(part, engine.MaxKeys(maxKeys))
	if err != nil {
		return nil, err
	}
	return &share{l, shares.NewDebts[string](maxKeys)}, nil
}

// take decides about n tokens.
func (s *share) take(key string, n uint64) engine.Decision {
	d := s.Take(key, n)
	if d.Allowed {
		s.owed.Add(key, n)
	}
	if d.RetryAfter == engine.Never { // larger than the share, but not than the limit
		d.RetryAfter = breaker.ProbeEvery
	}
	return d
}

// refund gives n tokens back that the share admitted.
func (s *share) refund(key string, n uint64) {
	s.Refund(key, n)
	s.owed.Forgive(key, n)
}

// reset makes a key as if the share had admitted nothing of it.
func (s *share) reset(key string) {
	s.Reset(key)
	s.owed.Drop(key)
}

// settle has the store charged with what the share admitted of the key, if it is anything. It is called when the
// store has answered. If the answer to this is lost it is charged again: maybe twice, never not at all.
func (l *Limiter) settle(key string) {
	if l.share == nil {
		return
	}
	owed := l.share.owed.Begin(key)
	if owed == 0 {
		return
	}
	queue, name := l.place(key)
	err := queue.put(question{key: name, ask: script.Ask{Debt: owed}, answered: func(_ script.Answer, err error) {
		l.share.owed.End(key, err == nil)
	}})
	if err != nil {
		l.share.owed.End(key, false)
	}
}
