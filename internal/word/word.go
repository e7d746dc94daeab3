//go:build !explore && !stress

// Package word names the one atomic type on which everything lock-free in
// this module rests. Production code gets [sync/atomic.Uint64] itself: the
// alias below compiles to nothing. Two build tags put another type with the same
// four methods here (Load, Store, CompareAndSwap, Add), so that the very same
// code can be tried in ways that the processor alone would not find:
//
//   - explore: a type that hands control to a scheduler before every operation,
//     for trying all interleavings (fuzz/explore).
//   - stress: an atomic type that now and then lets other goroutines run before
//     an operation, for stress tests on few cores (make soak).
package word

import "sync/atomic"

// Word is a 64-bit word that is only ever touched by atomic operations. All
// of them are sequentially consistent; the proofs in shard/doc.go lean on
// that.
type Word = atomic.Uint64
