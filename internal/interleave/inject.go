//go:build explore

package interleave

import (
	"fmt"

	"github.com/weir-go/weir/internal/word"
)

// Inject makes a call once for each of its operations on words, and before that operation what another goroutine does.
// make returns both, of a world of their own, and what checks that world and is told where the other came.
func Inject(make func() (call, other func(), check func(what string))) {
	defer func() { word.Before = nil }()
	for at, more := 0, true; more; at++ {
		call, other, check := make()
		made := 0
		more = false
		word.Before = func(word.Access) {
			if made++; made == at+1 {
				more, word.Before = true, nil
				other()
			}
		}
		call()
		word.Before = nil
		if more {
			check(fmt.Sprintf("between the operations %d and %d", at, at+1))
		}
	}
}
