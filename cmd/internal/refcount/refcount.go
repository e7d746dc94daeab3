// Package refcount counts the users of values that several configurations share, such as the connections to an
// upstream.
package refcount

import "sync/atomic"

// A Value is a value with a count of its users. The last user closes it.
type Value[T any] struct {
	Value T
	users atomic.Int64
	close func(T)
}

// New returns a Value with one user. The last user calls close.
func New[T any](value T, close func(T)) *Value[T] {
	v := &Value[T]{Value: value, close: close}
	v.users.Store(1)
	return v
}

// Acquire adds a user. During the call, the Value must have another user.
func (v *Value[T]) Acquire() *Value[T] {
	v.users.Add(1)
	return v
}

// Release removes a user. The last user closes the value.
func (v *Value[T]) Release() {
	if v.users.Add(-1) == 0 {
		v.close(v.Value)
	}
}
