package check

import "slices"

// Shrink returns a part of items for which fails is true, and false for that part without any one of its items. It must
// be true for all of items. It takes a few more than n log n calls in common cases, and n squared at most.
func Shrink[T any](items []T, fails func([]T) bool) []T {
	items = slices.Clone(items)
	for chunk := max(len(items)/2, 1); ; chunk = max(chunk/2, 1) {
		removed := false
		for at := 0; at < len(items); {
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
