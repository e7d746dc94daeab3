package engine

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPricesOfASharedTable (I1): the price of a token is in the file, so all processes count the same number of tokens.
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

// TestASharedChangeHasRoomForQuotas (I1): a change of the policy leaves room for a large quota of another process.
func TestASharedChangeHasRoomForQuotas(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, p Policy) *Limiter {
		l, err := New(p, Shared(filepath.Join(folder, name)), MaxKeys(100), MaxQuota(500))
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	under := func(l *Limiter) Key {
		q, err := l.Quota(TokenBucket(Per(1, time.Hour), 500))
		require.NoError(t, err)
		return l.Key("anna").With(q)
	}
	tenth, third := TokenBucket(PerSecond(10), 10), TokenBucket(PerSecond(3), 10)
	one, two := file("table", tenth), file("table", tenth)
	require.True(t, one.TakeKey(under(one), 500).Allowed)
	for _, p := range []Policy{third, tenth, third} {
		require.NoError(t, two.SetPolicy(p))
		require.False(t, one.TakeKey(under(one), 1).Allowed, p)
		require.False(t, two.TakeKey(under(two), 1).Allowed, p)
	}

	from, to := filepath.Join(folder, "table"), filepath.Join(folder, "copy")
	require.NoError(t, CopyShared(from, to, MaxKeys(500)))
	l, err := New(third, Shared(to), MaxKeys(500), MaxQuota(500))
	require.NoError(t, err)
	defer l.Close()
	require.False(t, l.TakeKey(under(l), 1).Allowed)
	require.NoError(t, l.SetPolicy(tenth))
	require.NoError(t, l.SetPolicy(third))
	require.False(t, l.TakeKey(under(l), 1).Allowed)

	one.Reset(under(one))
	require.NoError(t, RestoreShared(to, from))
	require.False(t, two.TakeKey(under(two), 1).Allowed)
}
