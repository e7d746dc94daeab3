//go:build explore

package explore

import (
	"errors"
	"fmt"
	"math/bits"
)

// stepBound is how many steps an execution may have: several times what the longest
// one has. One that has more is a livelock (I5). Every thread is stopped anywhere, and for
// ever, in some schedule: that of running the others only. So this is also what shows
// that the others finish; the report counts the states in which they have.
const stepBound = 600

// A report is what exploring a scenario has shown.
type report struct {
	states    int // different states met
	stops     int // of these, states in which one thread is stopped and the others have finished
	schedules int // executions, each to its end or to a state met before
	steps     int // operations, with those that were repeated to get back to a state
	longest   int // steps of the longest execution
}

// A choice is which thread did a step, which are still to be tried instead, and the
// state that came of it.
type choice struct {
	thread int
	others uint64 // bit per thread
	state  uint64
}

// A failure is an invariant broken, and the schedule that breaks it.
type failure struct {
	error
	schedule []string
}

// explore tries every schedule of a scenario: depth first over the choices. A coroutine
// cannot be copied, so to get back to a choice the calls are made again from the start.
// A state that was met before is not entered again. One that is met again on the way
// from itself is a circle: calls that go on for ever, and none of them gets anywhere.
func explore(s scenario) (report, error) {
	r, err := search(s, true)
	if errors.Is(err, errNotStill) {
		r, err = search(s, false)
	}
	return r, err
}

func search(s scenario, still bool) (report, error) {
	var r report
	w, err := newWorld(s, still)
	if err != nil {
		return r, err
	}
	seen := map[uint64]bool{} // true: on the present path
	var path []choice
	for {
		w.restart()
		r.schedules++
		again := len(path) - 1 // steps that were done and checked before
		for depth := 0; ; depth++ {
			if depth == len(path) {
				todo := w.unfinished()
				if todo == 0 {
					err = w.checkEnd()
					break
				}
				path = append(path, first(todo))
			}
			step := &path[depth]
			if err = w.step(step.thread); err != nil {
				break
			}
			r.steps++
			if depth < again {
				continue
			}
			step.state = w.hash()
			if here, met := seen[step.state]; here {
				err = fmt.Errorf("I5: after %d steps in the same state as before", depth+1)
				break
			} else if met {
				step.state = 0
				break
			}
			seen[step.state] = true
			if todo := w.unfinished(); len(w.threads) > 1 && todo != 0 && todo&(todo-1) == 0 {
				r.stops++
			}
			if depth == stepBound {
				err = fmt.Errorf("I5: no end after %d steps", depth)
				break
			}
		}
		r.states, r.longest = len(seen), max(r.longest, len(path))
		if errors.Is(err, errNotStill) {
			return r, err
		}
		if err != nil {
			return r, w.explain(path, err)
		}
		for len(path) > 0 {
			last := &path[len(path)-1]
			if last.state != 0 {
				seen[last.state] = false
			}
			if last.others != 0 {
				*last = first(last.others)
				break
			}
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return r, nil
		}
	}
}

// first chooses one of the threads.
func first(threads uint64) choice {
	return choice{thread: bits.TrailingZeros64(threads), others: threads & (threads - 1)}
}

// unfinished returns the threads that have a next step, a bit each.
func (w *world) unfinished() (threads uint64) {
	for i, th := range w.threads {
		threads |= (1 - bit(th.finished())) << i
	}
	return threads
}

// explain runs a schedule once more and writes down what it does.
func (w *world) explain(path []choice, err error) error {
	f := failure{error: err}
	w.trace = func(line string) { f.schedule = append(f.schedule, line) }
	w.restart()
	for _, c := range path {
		if w.step(c.thread) != nil {
			break
		}
	}
	return f
}
