//go:build explore

package interleave

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/word"
)

func TestAThreadIsTakenBack(t *testing.T) {
	var th *Thread
	did := ""
	th = NewThread(func() {
		did += "a"
		th.Pause(word.Access{})
		did += "b"
		th.Pause(word.Access{})
		did += "c"
	})
	th.Rewind() // the thread has not begun
	th.Resume()
	th.Resume()
	assert.Equal(t, "ab", did)
	th.Rewind()
	assert.Equal(t, "ab", did, "the rest is not done")
	for range 3 {
		th.Resume()
	}
	th.Rewind() // the thread is at its end
	th.Resume()
	assert.Equal(t, "ababca", did)
}

// TestHistory: the history of a thread depends only on the results of its operations.
func TestHistory(t *testing.T) {
	var w word.Word
	Intercept(nil)
	after := func(value uint64, operation func()) uint64 {
		w.Poke(value)
		th := NewThread(operation)
		th.Resume()
		th.Step()
		return th.History
	}
	for name, c := range map[string]struct {
		operation func()
		tells     bool // distinguishes 3 and 4
	}{
		"load":             {func() { w.Load() }, true},
		"swap":             {func() { w.Swap(1) }, true},
		"add":              {func() { w.Add(1) }, true},
		"store":            {func() { w.Store(1) }, false},
		"compare and swap": {func() { w.CompareAndSwap(3, 1) }, true},
		"one that fails":   {func() { w.CompareAndSwap(2, 1) }, false},
	} {
		assert.Equal(t, c.tells, after(3, c.operation) != after(4, c.operation), name)
		assert.NotZero(t, after(0, c.operation), name)
	}
}

func TestOnlyThreadsAreStopped(t *testing.T) {
	var w, private word.Word
	Intercept(func(a word.Access) bool { return a.Word == &private })
	w.Store(1) // outside of all threads
	th := NewThread(func() {
		private.Store(w.Load())
		w.Store(2)
	})
	th.Resume()
	th.Step()
	assert.Equal(t, word.Access{Word: &w, Op: word.Store, New: 2}, th.Pending, "what is private is no step")
	assert.EqualValues(t, 1, private.Peek())
	from, to := th.Step()
	assert.Equal(t, []uint64{1, 2}, []uint64{from, to})
}
