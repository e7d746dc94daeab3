//go:build !explore && !stress

// Package word names the atomic types on which everything lock-free in
// this module rests. Production code gets those of [sync/atomic] themselves: the
// aliases below compile to nothing. Two build tags put other types with the same
// methods here (Load, Store, Swap, CompareAndSwap, Add), so that the very same
// code can be tried in ways that the processor alone would not find:
//
//   - explore: a type that hands control to a scheduler before every operation,
//     for trying all interleavings (internal/interleave).
//   - stress: an atomic type that now and then lets other goroutines run before
//     an operation, for stress tests on few cores (make soak).
package word

import "sync/atomic"

// Word is a 64-bit word that is only ever touched by atomic operations. All
// of them are sequentially consistent; the proofs in shard/doc.go lean on
// that.
type Word = atomic.Uint64

// Int64 is a word that holds a number with a sign, such as a time. It is loaded and stored.
type Int64 = atomic.Int64

// operations has every operation of the names above. A package that imports this one, and not sync/atomic, gets from
// the compiler only the bodies that are used here: without them it would call a function for each operation.
var _ = operations

func operations(w *Word, i *Int64) {
	w.Store(w.Load() + w.Swap(0))
	w.CompareAndSwap(w.Add(1), 0)
	i.Store(i.Load())
}
