package check

import "slices"

// Shrink removes items as long as fails(items) stays true, and returns the remaining items. If any one more item were
// removed, fails would return false. For all items together, it must return true. For n items, Shrink usually calls
// fails a little more than n log n times. After maxCalls calls, Shrink returns the shortest list that it has found.
func Shrink[T any](items []T, maxCalls int, fails func([]T) bool) []T {
	items = slices.Clone(items)
	for chunk := max(len(items)/2, 1); ; chunk = max(chunk/2, 1) {
		removed := false
		for i := 0; i < len(items); maxCalls-- {
			if maxCalls <= 0 {
				return items
			}
			without := slices.Delete(slices.Clone(items), i, min(i+chunk, len(items)))
			if fails(without) {
				items, removed = without, true
			} else {
				i += chunk
			}
		}
		if chunk == 1 && !removed {
			return items
		}
	}
}
