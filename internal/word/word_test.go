//go:build !explore && !stress

package word_test

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/word"
)

// What is built without a tag is sync/atomic's own type, not one that looks like it: this
// does not compile if it is another.
var _ *atomic.Uint64 = (*word.Word)(nil)
