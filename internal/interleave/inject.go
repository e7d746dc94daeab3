//go:build explore

package interleave

import (
	"fmt"

	"github.com/weir-go/weir/internal/word"
)

// Inject runs call once for each of its operations on words. In each run, it calls other before a different one of
// these operations, as another goroutine could. The function make returns a new world each time: the two calls, and a
// function that checks the world. The parameter what describes the operation before which the other call was made.
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
