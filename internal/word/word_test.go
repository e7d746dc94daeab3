//go:build !explore && !stress

package word_test

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/word"
)

// What is built without a tag is sync/atomic's own types, not ones that look like them: this
// does not compile if one is another.
var (
	_ *atomic.Uint64        = (*word.Word)(nil)
	_ *atomic.Int64         = (*word.Int64)(nil)
	_ *atomic.Pointer[bool] = (*word.Pointer[bool])(nil)
)
