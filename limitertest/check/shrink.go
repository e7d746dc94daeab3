package check

import "slices"

// Shrink removes items as long as the function fails returns true for the rest, and returns the rest. If any one more
// item is removed from the rest, the function fails returns false. For all items together, it must return true. For n
// items, Shrink usually calls the function a little more than n log n times. The parameter most limits the number of
// these calls: when it is reached, Shrink stops and returns the shortest part that it has found until then.
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
