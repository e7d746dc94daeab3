//go:build explore

package interleave

import (
	"fmt"
	"math/bits"
	"testing"
)

// stepBound is the largest number of steps that an execution may have, several times the length of the longest
// execution. More steps are a livelock (I5). The schedules include every schedule in which a thread stops forever at
// some step, and only the other threads run. So the bound also shows that the other threads finish. The report counts
// the states in which they have finished.
const stepBound = 600

// shortBound is how many schedules of a world are tried with -short.
const shortBound = 5000

// A World is what an exploration runs: a few threads, everything that they share, and the conditions that must be true.
type World interface {
	// Restart starts an execution: every thread is before its first operation.
	Restart()
	// Unfinished returns the threads that have a next step, as a bit set.
	Unfinished() uint64
	// Outcomes returns how many outcomes the next step of a thread can have: one, unless the world decides the outcome.
	Outcomes(thread int) int
	// Step lets a thread make its next operation, with the outcome of the given number, and checks the conditions.
	Step(thread, outcome int) error
	// Hash returns a hash of the state of the world. Two different states have the same hash with a probability of
	// 2^-64.
	Hash() uint64
	// CheckEnd checks the conditions that must be true when every thread has finished.
	CheckEnd() error
	// Trace makes the world describe every step from now on.
	Trace(report func(line string))
}

// A Report is the result of an exploration.
type Report struct {
	States    int  // different states visited
	Stops     int  // of these, states in which one thread is stopped and the others have finished
	Schedules int  // executions; each ran to its end or to a state visited before
	Longest   int  // steps of the longest execution
	Partial   bool // only the first schedules were tried, because of -short
}

// A Failure is a broken invariant, and the schedule that breaks it.
type Failure struct {
	error
	Schedule []string
}

// Unwrap returns what is broken.
func (f Failure) Unwrap() error { return f.error }

// A choice is a step of a schedule. It has the thread that made the step, the number of the step's outcome, the threads
// to try instead (alternatives), and the resulting state.
type choice struct {
	thread            int
	outcome, outcomes int
	alternatives      uint64 // bit per thread
	state             uint64
}

// Explore tries every schedule of a world, depth first. A coroutine cannot be copied. So to return to a choice, the
// calls run again from the start. A state that was visited before is not entered again. If a path returns to one of its
// own states, the calls go around in a circle without progress. This is a failure.
//
// With -short it tries only the first 5,000 schedules. Many scenarios do not have more. The error is a [Failure].
func Explore(w World) (Report, error) {
	var r Report
	visited := map[uint64]bool{} // true: on the current path
	isConcurrent := false
	var path []choice
	for {
		w.Restart()
		isConcurrent = isConcurrent || bits.OnesCount64(w.Unfinished()) > 1
		r.Schedules++
		replayed := len(path) - 1 // the steps that were made and checked before
		var err error
		for depth := 0; ; depth++ {
			if depth == len(path) {
				unfinished := w.Unfinished()
				if unfinished == 0 {
					err = w.CheckEnd()
					break
				}
				path = append(path, firstChoice(unfinished))
			}
			step := &path[depth]
			if step.outcomes == 0 {
				step.outcomes = w.Outcomes(step.thread)
			}
			if err = w.Step(step.thread, step.outcome); err != nil {
				break
			}
			if depth < replayed {
				continue
			}
			step.state = w.Hash()
			if onPath, isVisited := visited[step.state]; onPath {
				err = fmt.Errorf("I5: after %d steps in the same state as before", depth+1)
				break
			} else if isVisited {
				step.state = 0
				break
			}
			visited[step.state] = true
			if isConcurrent && bits.OnesCount64(w.Unfinished()) == 1 {
				r.Stops++
			}
			if depth == stepBound {
				err = fmt.Errorf("I5: no end after %d steps", depth)
				break
			}
		}
		r.States, r.Longest = len(visited), max(r.Longest, len(path))
		if err != nil {
			return r, explain(w, path, err)
		}
		if path = next(path, visited); len(path) == 0 {
			return r, nil
		}
		if r.Partial = testing.Short() && r.Schedules == shortBound; r.Partial {
			return r, nil
		}
	}
}

// next returns the path to the next choice to try. If no choice is left, the path has no steps.
func next(path []choice, visited map[uint64]bool) []choice {
	for len(path) > 0 {
		last := &path[len(path)-1]
		if last.state != 0 {
			visited[last.state] = false
		}
		if last.outcome+1 < last.outcomes {
			last.outcome, last.state = last.outcome+1, 0
			break
		}
		if last.alternatives != 0 {
			*last = firstChoice(last.alternatives)
			break
		}
		path = path[:len(path)-1]
	}
	return path
}

func firstChoice(threads uint64) choice {
	return choice{thread: bits.TrailingZeros64(threads), alternatives: threads & (threads - 1)}
}

// explain runs a schedule again and describes its steps.
func explain(w World, path []choice, err error) error {
	f := Failure{error: err}
	w.Trace(func(line string) { f.Schedule = append(f.Schedule, line) })
	w.Restart()
	for _, c := range path {
		if w.Step(c.thread, c.outcome) != nil {
			break
		}
	}
	return f
}
