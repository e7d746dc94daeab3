package check

import "slices"

// Shrink returns a part of items for which fails returns true, such that fails returns false if any one item is
// removed. fails must return true for the complete items. Shrink usually calls fails a little more than n log n times.
// After most calls, it stops and returns the shortest part that it has found until then.
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
