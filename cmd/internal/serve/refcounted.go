package serve

import "sync/atomic"

// A refcounted value is used by several generations: the limiter of a rule, the connections to an upstream. The last
// release closes it.
type refcounted[T any] struct {
	value   T
	holders atomic.Int64
	close   func(T)
}

// newRefcounted returns a value with one holder.
func newRefcounted[T any](value T, close func(T)) *refcounted[T] {
	r := &refcounted[T]{value: value, close: close}
	r.holders.Store(1)
	return r
}

// acquire adds a holder. Another one must hold the value during the call.
func (r *refcounted[T]) acquire() *refcounted[T] {
	r.holders.Add(1)
	return r
}

func (r *refcounted[T]) release() {
	if r.holders.Add(-1) == 0 {
		r.close(r.value)
	}
}
