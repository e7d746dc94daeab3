package spread

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

func terms(t testing.TB, tokens float64, burst uint64, cells int) *Terms {
	t.Helper()
	bucket, err := atomicbucket.NewTokenBucket(tokens, Ahead, burst)
	require.NoError(t, err)
	made, err := NewTerms(&bucket, cells, 0, nil)
	require.NoError(t, err)
	return made
}

// A told is a clock that returns the time that a test has set.
type told struct{ nanos atomic.Int64 }

func newTold() *told {
	c := &told{}
	c.nanos.Store(int64(time.Hour))
	return c
}

func (b *Bucket) takes(i int, n uint64) bool {
	return n == 1 && b.Spend(i) || b.SpendAt(i, n, b.clock()).Admitted || b.Take(i, n).Admitted
}
