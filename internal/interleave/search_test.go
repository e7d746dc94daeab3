//go:build explore

package interleave

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/word"
)

// A toy is a world of one word and threads that each do one thing.
type toy struct {
	number  word.Word
	threads []*Thread
	done    []bool
	ways    int
	way     int   // the outcome of the last step that had several outcomes
	went    []int // the value of way at the end of each execution
	forgets bool  // before a load, a thread forgets what it has read
	want    uint64
	tell    func(string)
}

// newToy returns a world in which the field number must have the value want at the end.
func newToy(want uint64, threads ...func(w *toy)) *toy {
	w := &toy{want: want, ways: 1, done: make([]bool, len(threads)), tell: func(string) {}}
	Intercept(nil)
	for i, run := range threads {
		w.threads = append(w.threads, NewThread(func() {
			run(w)
			w.done[i] = true
		}))
	}
	return w
}

func (w *toy) Restart() {
	for _, th := range w.threads {
		th.Rewind()
	}
	w.number.Poke(0)
	clear(w.done)
	for _, th := range w.threads {
		th.Resume()
	}
}

func (w *toy) Unfinished() (threads uint64) {
	for i, done := range w.done {
		threads |= (1 - Bit(done)) << i
	}
	return threads
}

func (w *toy) Outcomes(thread int) int {
	if w.threads[thread].Pending.Word == nil {
		return w.ways
	}
	return 1
}

func (w *toy) Step(thread, way int) error {
	th := w.threads[thread]
	if th.Pending.Word == nil {
		w.way = way
		th.History = Mix(th.History, uint64(way))
	}
	_, to := th.Step()
	w.tell(fmt.Sprintf("t%d: %d", thread, to))
	if w.forgets && !w.done[thread] && th.Pending.Op == word.Load {
		th.History = 0
	}
	return nil
}

func (w *toy) Hash() uint64 {
	h := w.number.Peek()
	for i, th := range w.threads {
		h = Mix(Mix(h, th.History), Bit(w.done[i]))
	}
	return h
}

func (w *toy) CheckEnd() error {
	w.went = append(w.went, w.way)
	if got := w.number.Peek(); got != w.want {
		return fmt.Errorf("X1: %d, want %d", got, w.want)
	}
	return nil
}

func (w *toy) Trace(tell func(string)) { w.tell = tell }

func careless(w *toy) { w.number.Store(w.number.Load() + 1) }

func careful(w *toy) {
	for n := w.number.Load(); !w.number.CompareAndSwap(n, n+1); n = w.number.Load() {
	}
}

func TestALostUpdateIsFound(t *testing.T) {
	_, err := Explore(newToy(2, careless, careless))
	require.ErrorContains(t, err, "X1: 1, want 2")
	var f Failure
	require.ErrorAs(t, err, &f)
	assert.Len(t, f.Schedule, 4, "the schedule: two loads, two stores")
	assert.EqualError(t, errors.Unwrap(f), "X1: 1, want 2")
}

func TestEveryScheduleIsTried(t *testing.T) {
	r, err := Explore(newToy(2, careful, careful))
	require.NoError(t, err)
	// In the longest execution, both threads load and both swap. The thread whose swap fails loads and swaps again.
	assert.Equal(t, Report{States: 17, Stops: 10, Schedules: 5, Longest: 6}, r)
	_, err = Explore(newToy(3, careful, careful))
	require.ErrorContains(t, err, "X1: 2, want 3")
}

func TestALivelockIsFound(t *testing.T) {
	waits := func(w *toy) {
		for w.number.Load() == 0 {
		}
	}
	w := newToy(1, waits, careful)
	_, err := Explore(w)
	require.ErrorContains(t, err, "I5: no end after 600 steps", "what it knows grows, so no state comes again")
	w = newToy(1, waits, careful)
	w.forgets = true
	_, err = Explore(w)
	require.ErrorContains(t, err, "I5: after 2 steps in the same state as before")
}

func TestEveryWayIsTried(t *testing.T) {
	w := newToy(1, func(w *toy) {
		w.threads[0].Pause(word.Access{})
		careful(w)
	})
	w.ways = 3
	_, err := Explore(w)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1, 2}, w.went)
}
