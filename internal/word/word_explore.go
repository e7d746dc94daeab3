//go:build explore

package word

import "slices"

// An Op is one of the operations of a [Word].
type Op uint8

// The operations.
const (
	Load Op = iota
	Store
	Swap
	CompareAndSwap
	Add
)

// An Access is an operation that is about to happen. Old is the value that CompareAndSwap expects. New is the value
// that Store, Swap and CompareAndSwap write, or that Add adds.
type Access struct {
	Word     *Word
	Op       Op
	Old, New uint64
}

// Before is called before every operation on every word, unless Before is nil. A scheduler sets it. The call returns
// when it is the turn of this operation.
var Before func(Access)

// A Word replaces sync/atomic.Uint64. It need not be atomic, because the scheduler lets only one operation happen at a
// time, and decides their order.
type Word struct{ value uint64 }

// Load returns the value.
func (w *Word) Load() uint64 {
	before(Access{w, Load, 0, 0})
	return w.value
}

// Store writes the value.
func (w *Word) Store(value uint64) {
	before(Access{w, Store, 0, value})
	w.value = value
}

// Swap writes the value and returns the previous one.
func (w *Word) Swap(value uint64) uint64 {
	before(Access{w, Swap, 0, value})
	old := w.value
	w.value = value
	return old
}

// CompareAndSwap replaces the value by the second argument if the value equals the first argument. It reports whether
// it has replaced the value.
func (w *Word) CompareAndSwap(from, to uint64) bool {
	before(Access{w, CompareAndSwap, from, to})
	if w.value != from {
		return false
	}
	w.value = to
	return true
}

// Add adds delta and returns the sum.
func (w *Word) Add(delta uint64) uint64 {
	before(Access{w, Add, 0, delta})
	w.value += delta
	return w.value
}

// Peek returns the value to the scheduler. It does not count as an operation.
func (w *Word) Peek() uint64 { return w.value }

// Poke sets the value for the scheduler. It does not count as an operation.
func (w *Word) Poke(value uint64) { w.value = value }

func before(a Access) {
	if Before != nil {
		Before(a)
	}
}

// An Int64 replaces sync/atomic.Int64: a word that holds a signed number.
type Int64 struct{ Word }

// Load returns the value.
func (i *Int64) Load() int64 { return int64(i.Word.Load()) }

// Store writes the value.
func (i *Int64) Store(value int64) { i.Word.Store(uint64(value)) }

// A Pointer replaces sync/atomic.Pointer. It is a word with the number of the value to which it points. The number 0
// stands for nil.
type Pointer[T any] struct {
	Word
	values []*T
}

// Load returns the pointer.
func (p *Pointer[T]) Load() *T {
	if number := p.Word.Load(); number > 0 {
		return p.values[number-1]
	}
	return nil
}

// At returns the value with a number. It does not count as an operation.
func (p *Pointer[T]) At(number uint64) *T { return p.values[number-1] }

// CompareAndSwap replaces the pointer by the second argument if the pointer equals the first argument. It reports
// whether it has replaced the pointer.
func (p *Pointer[T]) CompareAndSwap(from, to *T) bool {
	return p.Word.CompareAndSwap(p.number(from), p.number(to))
}

// Store writes the pointer.
func (p *Pointer[T]) Store(value *T) {
	p.Word.Store(p.number(value))
}

// number returns the number of a value, 0 for nil.
func (p *Pointer[T]) number(value *T) uint64 {
	if value == nil {
		return 0
	}
	number := slices.Index(p.values, value)
	if number < 0 {
		number = len(p.values)
		p.values = append(p.values, value)
	}
	return uint64(number) + 1
}
