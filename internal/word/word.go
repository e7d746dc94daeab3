//go:build !explore && !stress

// Package word names the atomic types of all lock-free code in this module. In production code, they are aliases of the
// types of [sync/atomic]. Two build tags replace them by types with the same methods (Load, Store, Swap,
// CompareAndSwap, Add), to run the same code in ways that the processor alone would rarely produce:
//
//   - explore: a type that passes control to a scheduler before every operation, to try all interleavings
//     (internal/interleave).
//   - stress: an atomic type that sometimes lets other goroutines run before an operation, for stress tests on few
//     cores (make soak).
package word

import "sync/atomic"

// Word is a 64-bit word that is accessed only by atomic operations. All these operations are sequentially consistent,
// and the arguments in shard/doc.go depend on that.
type Word = atomic.Uint64

// Int64 is a word that has a signed number, such as a time. This module only loads and stores such words.
type Int64 = atomic.Int64

// operations uses every operation of the types above. Consider a package that imports this package and not sync/atomic.
// In such a package, the compiler can inline only the operations that are used here. Without this variable, the package
// would call a function for each operation.
var _ = operations

func operations(w *Word, i *Int64) {
	w.Store(w.Load() + w.Swap(0))
	w.CompareAndSwap(w.Add(1), 0)
	i.Store(i.Load())
}
