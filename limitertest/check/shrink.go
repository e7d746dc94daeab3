package check

import "slices"

// Shrink removes items as long as its last argument, a function, returns true for the remaining items. Then Shrink
// returns the remaining items. If any one more item is removed, the function returns false. For all items together, the
// function must return true. For n items, Shrink usually calls the function a little more than n log n times. The
// argument most bounds the number of calls. After that number of calls, Shrink returns the shortest part that it has
// found.
func Shrink[T any](items []T, most int, fails func([]T) bool) []T {
	items = slices.Clone(items)
	for chunk := max(len(items)/2, 1); ; chunk = max(chunk/2, 1) {
		removed := false
		for at := 0; at < len(items); most-- {
			if most <= 0 {
				return items
			}
			without := slices.Delete(slices.Clone(items), at, min(at+chunk, len(items)))
			if fails(without) {
				items, removed = without, true
			} else {
				at += chunk
			}
		}
		if chunk == 1 && !removed {
			return items
		}
	}
}
