//go:build !explore

package word

import "sync/atomic"

// A Pointer is a pointer that is accessed only by atomic operations.
type Pointer[T any] = atomic.Pointer[T]
