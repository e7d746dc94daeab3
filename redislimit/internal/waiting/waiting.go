// Package waiting decides which waiting questions go into the next call to a store. Package redislimit and the
// simulator use it.
package waiting

import "slices"

// Next takes the questions for the next call from the list waiting. It takes the oldest questions or, if isNewest is
// true, the newest, and keeps their order. Their total size does not exceed capacity, unless a single question does.
// The result remaining has the questions that still wait.
//
// Next calls drop for late questions, which are always the oldest. It also calls drop for a question without a waiting
// caller if it visits the question. It visits each question at most twice.
func Next[T any](waiting []T, capacity int, isNewest bool, size func(T) int, isLate, isGivenUp func(T) bool, drop func(T)) (call, remaining []T) {
	begin, end := 0, len(waiting)
	for begin < end && (isLate(waiting[begin]) || isGivenUp(waiting[begin])) {
		drop(waiting[begin])
		begin++
	}
	for begin < end {
		i := begin
		if isNewest {
			i = end - 1
		}
		q := waiting[i]
		if isGivenUp(q) {
			drop(q)
		} else if capacity -= size(q); capacity < 0 && len(call) > 0 {
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
