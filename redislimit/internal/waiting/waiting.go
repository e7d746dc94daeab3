// Package waiting decides which waiting questions go into the next call to a store. Package redislimit and the
// simulator use it.
package waiting

import "slices"

// Next takes the questions for the next call from the slice waiting, in the order in which they came. It takes either
// questions whose total size does not exceed the parameter most, or a single larger question. If more questions wait,
// it takes the oldest questions, or the newest questions if isNewest is true. Two kinds of questions do not go into the
// call. Next calls the function drop for them. The first kind is late questions, which are always the oldest. The
// second kind is questions that Next visits and for which no caller waits any longer. Next returns the questions of the
// call and the questions that still wait. It looks at each question at most twice, no matter how many wait.
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
