//go:build !explore

// Package word names the one atomic type on which everything lock-free in
// this module rests. Production code gets [sync/atomic.Uint64] itself: the
// alias below compiles to nothing. A build with the tag "explore" may put
// another type with the same four methods here (Load, Store, CompareAndSwap,
// Add), one that hands control to a scheduler before every operation, so that
// all interleavings of the very same code can be tried.
package word

import "sync/atomic"

// Word is a 64-bit word that is only ever touched by atomic operations. All
// of them are sequentially consistent; the proofs in shard/doc.go lean on
// that.
type Word = atomic.Uint64
