// Package waiting decides which questions go into the next call to a store, for the nodes and for the simulator.
package waiting

import "slices"

// Next takes the questions for the next call from waiting, in the order in which they came. It takes either several
// questions whose total size is at most most, or a single larger one. If more wait, isNewest selects the newest ones
// instead of the oldest. Next passes two kinds of questions to drop instead of putting them into the call: late ones,
// which are the oldest, and those that it meets and that no caller waits for. It returns the call and the questions
// that still wait. It looks at each question at most twice, no matter how many wait.
func Next[T any](waiting []T, most int, isNewest bool, size func(T) int, isLate, isGivenUp func(T) bool, drop func(T)) (call, rest []T) {
	begin, end := 0, len(waiting)
	for begin < end && (isLate(waiting[begin]) || isGivenUp(waiting[begin])) {
		drop(waiting[begin])
		begin++
	}
	for begin < end {
		at := begin
		if isNewest {
			at = end - 1
		}
		q := waiting[at]
		if isGivenUp(q) {
			drop(q)
		} else if most -= size(q); most < 0 && len(call) > 0 {
			break
		} else {
			call = append(call, q)
		}
		if isNewest {
			end--
		} else {
			begin++
		}
	}
	if isNewest {
		slices.Reverse(call)
	}
	clear(waiting[:begin])
	clear(waiting[end:])
	return call, waiting[begin:end]
}
