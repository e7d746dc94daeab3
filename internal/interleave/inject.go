//go:build explore

package interleave

import (
	"fmt"

	"github.com/weir-go/weir/internal/word"
)

// Inject runs a call once for each operation on words that the call makes. In each run, it makes another call before a
// different one of these operations, as another goroutine could. For each run, the function make returns three
// functions: call, other, and a function check for the state after both. The parameter what of check describes the
// operation before which other was called.
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
