//go:build !explore && !stress

package word_test

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/word"
)

// Without a build tag, the types are the types of sync/atomic themselves. These declarations do not compile if one type
// is different.
var (
	_ *atomic.Uint64        = (*word.Word)(nil)
	_ *atomic.Int64         = (*word.Int64)(nil)
	_ *atomic.Pointer[bool] = (*word.Pointer[bool])(nil)
)
