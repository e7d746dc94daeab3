// Package refcount has values that several configurations use, such as the connections to an upstream.
package refcount

import "sync/atomic"

// A Value is closed by its last holder.
type Value[T any] struct {
	Value   T
	holders atomic.Int64
	close   func(T)
}

// New returns a value with one holder. close ends it.
func New[T any](value T, close func(T)) *Value[T] {
	v := &Value[T]{Value: value, close: close}
	v.holders.Store(1)
	return v
}

// Acquire adds a holder. Another one must hold the value during the call.
func (v *Value[T]) Acquire() *Value[T] {
	v.holders.Add(1)
	return v
}

// Release removes a holder. The last one closes the value.
func (v *Value[T]) Release() {
	if v.holders.Add(-1) == 0 {
		v.close(v.Value)
	}
}
