// Package refcount counts the users of values that several configurations share, such as the connections to an
// upstream.
package refcount

import "sync/atomic"

// A Value is closed by its last user.
type Value[T any] struct {
	Value   T
	holders atomic.Int64
	close   func(T)
}

// New returns a value with one user. close is called at its end.
func New[T any](value T, close func(T)) *Value[T] {
	v := &Value[T]{Value: value, close: close}
	v.holders.Store(1)
	return v
}

// Acquire adds a user. Another user must hold the value during the call.
func (v *Value[T]) Acquire() *Value[T] {
	v.holders.Add(1)
	return v
}

// Release removes a user. The last one closes the value.
func (v *Value[T]) Release() {
	if v.holders.Add(-1) == 0 {
		v.close(v.Value)
	}
}
