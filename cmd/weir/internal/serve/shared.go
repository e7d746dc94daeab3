package serve

import "sync/atomic"

// shared is something that several generations use: the limiter of a rule, the connections to an
// upstream. The last release closes it.
type shared[T any] struct {
	value   T
	holders atomic.Int64
	close   func(T)
}

// share returns a value with one holder.
func share[T any](value T, close func(T)) *shared[T] {
	s := &shared[T]{value: value, close: close}
	s.holders.Store(1)
	return s
}

// hold adds a holder. The caller knows of another one that does not release meanwhile.
func (s *shared[T]) hold() *shared[T] {
	s.holders.Add(1)
	return s
}

func (s *shared[T]) release() {
	if s.holders.Add(-1) == 0 {
		s.close(s.value)
	}
}
