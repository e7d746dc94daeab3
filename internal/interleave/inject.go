//go:build explore

package interleave

import (
	"fmt"

	"github.com/weir-go/weir/internal/word"
)

// Inject runs a call once for each operation on words that the call makes. Each time, it makes another call before that
// operation, as another goroutine could. The function setup returns the two calls and the function check. The function
// check gets a description of the operation, and checks the state after both calls.
func Inject(setup func() (call, other func(), check func(operation string))) {
	defer func() { word.Before = nil }()
	for position, injected := 0, true; injected; position++ {
		call, other, check := setup()
		count := 0
		injected = false
		word.Before = func(word.Access) {
			if count++; count == position+1 {
				injected, word.Before = true, nil
				other()
			}
		}
		call()
		word.Before = nil
		if injected {
			check(fmt.Sprintf("between the operations %d and %d", position, position+1))
		}
	}
}
