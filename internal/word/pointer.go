//go:build !explore

package word

import "sync/atomic"

// A Pointer is a pointer that is only ever touched by atomic operations.
type Pointer[T any] = atomic.Pointer[T]
