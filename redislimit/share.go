package redislimit

import (
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// A share is a node's part of a limit, which decides where the store does not answer. What it admits is
// owed to the store, and charged with the first answer after: so the shares of all nodes admit one limit at most
// beyond the limit, however often the store fails.
type share struct {
	*engine.Limiter
	limit    uint64
	used     atomic.Bool // ever
	settling sync.Map    // keys whose settlement is under way
}

func newShare(part engine.Policy, maxKeys int) (*share, error) {
	l, err := engine.New(part, engine.MaxKeys(maxKeys))
	if err != nil {
		return nil, err
	}
	return &share{Limiter: l, limit: part.Limit()}, nil
}

// take decides about n tokens.
func (s *share) take(key string, n uint64) engine.Decision {
	d := s.Take(key, n)
	if d.Allowed && !s.used.Load() {
		s.used.Store(true)
	}
	if d.RetryAfter == engine.Never { // larger than the share, but not than the limit
		d.RetryAfter = breaker.ProbeEvery
	}
	return d
}

// settle has the store charged with what the share admitted of the key, if it is anything. It is called when the
// store has answered. The share gets it back when the store has answered to that, too: if that answer is lost it
// may be charged twice, never not at all.
func (l *Limiter) settle(key string) {
	s := l.share
	if s == nil || !s.used.Load() {
		return
	}
	if _, underWay := s.settling.LoadOrStore(key, nil); underWay {
		return
	}
	// Read after the settlement is entered: before that it may be what another settlement has just charged.
	owed := s.limit - s.Peek(key, 1).Remaining
	if owed == 0 {
		s.settling.Delete(key)
		return
	}
	queue, name := l.place(key)
	err := queue.put(question{name, script.Ask{Debt: owed}, func(_ script.Answer, err error) {
		if err == nil {
			s.Refund(key, owed)
		}
		s.settling.Delete(key)
	}, nil})
	if err != nil {
		s.settling.Delete(key)
	}
}
