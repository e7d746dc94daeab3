package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aDay is the time in which the tokens of a test come back, for every algorithm.
const aDay = 24 * time.Hour

// TestCopySharedCarriesDebts: in a copy with another size and other options, each key has as many tokens left.
func TestCopySharedCarriesDebts(t *testing.T) {
	for _, policy := range []Policy{
		TokenBucket(Per(1, aDay), 40), TokenBucket(Per(97.3, 365*aDay), 40), BatchRefill(1, aDay, 40), FixedWindow(40, aDay),
		FixedWindow(40, 365*aDay).Aligned(), SlidingWindow(40, 365*aDay),
	} {
		t.Run(policy.String(), func(t *testing.T) {
			folder := t.TempDir()
			from, to := filepath.Join(folder, "table"), filepath.Join(folder, "copy")
			l, err := New(policy, Shared(from), MaxKeys(100), Tiers(policy))
			require.NoError(t, err)
			defer l.Close()
			for i := range 40 {
				require.True(t, l.Take("key "+strconv.Itoa(i), uint64(i+1)).Allowed)
			}
			options := []Option{MaxKeys(5000), Shards(4), Overflow(Refuse)}
			require.NoError(t, CopyShared(from, to, options...))
			assert.ErrorContains(t, CopyShared(from, to), "file exists")
			other, err := New(policy, append(options, Shared(to), Tiers(policy))...)
			require.NoError(t, err)
			defer other.Close()
			for i := range 40 {
				key := "key " + strconv.Itoa(i)
				assert.Equal(t, uint64(39-i), other.Peek(other.Key(key), 1).Remaining, key)
			}
			assert.EqualValues(t, 40, other.Peek(other.Key("another"), 1).Remaining)
		})
	}
}

// TestCopySharedOfAnotherSize: if New chose the number of shards, the copy has the number for its new MaxKeys.
func TestCopySharedOfAnotherSize(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	make := func(name string, options ...Option) error {
		l, err := New(TokenBucket(Per(1, aDay), 10), append(options, Shared(path(name)))...)
		if err == nil {
			err = l.Close()
		}
		return err
	}
	require.NoError(t, make("small", MaxKeys(100)))
	require.NoError(t, CopyShared(path("small"), path("large"), MaxKeys(100_000)))
	require.NoError(t, make("large", MaxKeys(100_000)))
	require.NoError(t, CopyShared(path("large"), path("small again"), MaxKeys(100)))
	require.NoError(t, make("small again", MaxKeys(100)))
	require.NoError(t, make("four", MaxKeys(100), Shards(4)))
	require.NoError(t, CopyShared(path("four"), path("large of four"), MaxKeys(100_000)))
	require.NoError(t, make("large of four", MaxKeys(100_000), Shards(4)))
}

func TestSharedBytes(t *testing.T) {
	for _, policy := range []Policy{TokenBucket(PerSecond(1), 5), Concurrency(5, time.Hour)} {
		path := filepath.Join(t.TempDir(), "table")
		l, err := New(policy, Shared(path), MaxKeys(20_000), Tiers(policy))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		info, err := os.Stat(path)
		require.NoError(t, err)
		bytes, err := Bytes(policy, Shared(path), MaxKeys(20_000), Tiers(policy))
		require.NoError(t, err)
		assert.EqualValues(t, info.Size(), bytes)
	}
	_, err := Bytes(SlidingLog(5, time.Hour), Shared("x"), MaxKeys(100))
	assert.ErrorContains(t, err, "a table of logs cannot be shared")
	_, err = Bytes(TokenBucket(PerSecond(1), 5), Shared("x"), MaxKeys(0))
	assert.ErrorContains(t, err, "MaxKeys(0)")
}

// TestRestoreShared: after a restore, keys owe at least what they owe in the copy.
func TestRestoreShared(t *testing.T) {
	folder := t.TempDir()
	path, backup := filepath.Join(folder, "table"), filepath.Join(folder, "backup")
	l, err := dailyShared(path)
	require.NoError(t, err)
	defer l.Close()
	for key, n := range map[string]uint64{"stays": 3, "more": 3, "reset": 7} {
		require.True(t, l.Take(key, n).Allowed)
	}
	require.NoError(t, CopyShared(path, backup))
	require.True(t, l.Take("more", 2).Allowed)
	l.Reset(l.Key("reset"))
	require.True(t, l.Take("new", 1).Allowed)
	for range 2 {
		require.NoError(t, RestoreShared(backup, path))
		for key, left := range map[string]uint64{"stays": 7, "more": 5, "reset": 3, "new": 9, "never": 10} {
			assert.Equal(t, left, l.Peek(l.Key(key), 1).Remaining, key)
		}
	}
	l.Sweep()
	require.NoError(t, l.Stats().FileLost, "it is the same file")

	require.NoError(t, os.Rename(path, path+".old"))
	fresh, err := dailyShared(path)
	require.NoError(t, err)
	defer fresh.Close()
	assert.ErrorContains(t, RestoreShared(backup, path), "another secret")
	require.NoError(t, os.Remove(path))
	require.NoError(t, RestoreShared(backup, path))
	restored, err := dailyShared(path)
	require.NoError(t, err)
	defer restored.Close()
	assert.EqualValues(t, 3, restored.Peek(restored.Key("reset"), 1).Remaining)
	assert.EqualValues(t, 10, restored.Peek(restored.Key("new"), 1).Remaining)
}

// TestCopyBesideTraffic: while a copy and a restore run next to takes, each key gets at most its burst.
func TestCopyBesideTraffic(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "table")
	l, err := New(TokenBucket(Per(1, aDay), 100), Shared(path), MaxKeys(500))
	require.NoError(t, err)
	defer l.Close()
	var admitted [50]atomic.Int64
	var working sync.WaitGroup
	for range 2 {
		working.Go(func() {
			for i := range 50 * 200 {
				if l.Allow("key " + strconv.Itoa(i%50)) {
					admitted[i%50].Add(1)
				}
			}
		})
	}
	for i := range 20 {
		backup := filepath.Join(folder, fmt.Sprint("backup", i))
		require.NoError(t, CopyShared(path, backup))
		require.NoError(t, RestoreShared(backup, path))
	}
	working.Wait()
	for i := range admitted {
		assert.EqualValues(t, 100, admitted[i].Load(), "a restore of what is there takes nothing, and gives nothing")
	}
}

// TestCopySharedRefuses: CopyShared returns an error for options that would make another kind of table.
func TestCopySharedRefuses(t *testing.T) {
	folder := t.TempDir()
	path, to := filepath.Join(folder, "table"), filepath.Join(folder, "copy")
	assert.ErrorIs(t, CopyShared(path, to), os.ErrNotExist)
	l, err := dailyShared(path)
	require.NoError(t, err)
	defer l.Close()
	for name, option := range map[string]Option{
		"hash": HashStable(), "clock": ClockFunc(time.Now), "another file": Shared(to + "2"), "policy": ReplacePolicy(),
	} {
		assert.ErrorContains(t, CopyShared(path, to, option), "want other options", name)
	}
	assert.ErrorContains(t, CopyShared(path, to, nil), "option 1 of 1 is nil")
	assert.ErrorContains(t, CopyShared(path, to, MaxKeys(0)), "MaxKeys(0)")
	_, err = os.Stat(to)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
