package engine

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPricesOfASharedTable (I1): what a token cost is in the file, so all processes count a key's tokens alike, and so
// do a copy and a table that is restored from it.
func TestPricesOfASharedTable(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, options ...Option) *Limiter {
		options = append([]Option{Shared(filepath.Join(folder, name)), MaxKeys(100)}, options...)
		l, err := New(TokenBuckets(48*time.Hour), options...)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	under := func(l *Limiter, p Policy) Key {
		q, err := l.Quota(p)
		require.NoError(t, err)
		return l.Key("anna").With(q)
	}
	fast, slow := TokenBucket(Per(1000, time.Hour), 1000), TokenBucket(Per(40, time.Hour), 1000)
	left := func(l *Limiter) uint64 { return l.Peek(under(l, slow), 1).Remaining }
	one, two := file("table"), file("table")
	require.True(t, one.TakeKey(under(one, fast), 900).Allowed)
	require.InDelta(t, 100, left(two), 1)
	require.True(t, two.TakeKey(under(two, slow), 50).Allowed)
	require.InDelta(t, 50, left(one), 1)

	from, to := filepath.Join(folder, "table"), filepath.Join(folder, "copy")
	require.NoError(t, CopyShared(from, to, MaxKeys(500)))
	other := file("copy", MaxKeys(500))
	require.InDelta(t, 50, left(other), 1)
	one.Reset(under(one, fast))
	require.NoError(t, RestoreShared(to, from))
	require.InDelta(t, 50, left(two), 1)
}
