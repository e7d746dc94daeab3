//go:build explore

package interleave

import (
	"fmt"

	"github.com/weir-go/weir/internal/word"
)

// Inject runs a call once for each operation on words that the call makes. Each time, it makes another call before that
// operation, as another goroutine could. The function make returns the two calls and the function check. The function
// check gets a description of the operation, and checks the state after both calls.
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
