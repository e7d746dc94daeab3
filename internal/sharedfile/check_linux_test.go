package sharedfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAFileThatIsLost: an attached process notices if its file is no longer at its path, and if it is there again.
func TestAFileThatIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	f := open(t, path, 0)
	require.NoError(t, f.Check())
	require.NoError(t, os.Rename(path, path+".old"))
	assert.ErrorContains(t, f.Check(), "was removed or moved while it is in use")
	other := open(t, path, 0)
	assert.ErrorContains(t, f.Check(), "another file has taken the place")
	assert.NoError(t, other.Check())
	require.NoError(t, os.Rename(path+".old", path))
	assert.NoError(t, f.Check())
	assert.ErrorContains(t, other.Check(), "another file has taken the place")
	require.NoError(t, os.Remove(path))
	assert.ErrorContains(t, f.Check(), path)
}

// TestADamagedClockIsWrittenAgain: if the page of the clock is damaged, an attached process writes back the values that
// it read when it attached. Until then no other process can attach.
func TestADamagedClockIsWrittenAgain(t *testing.T) {
	const start = int64(1_800_000_000e9)
	path := filepath.Join(t.TempDir(), "table")
	first := open(t, path, start)
	write := words(t, path)
	for _, at := range []int64{bootAt, bootAt + 8, aheadAt, checkAt} {
		before := write(at, 1)
		_, err := Open(path, spec(start+1))
		require.ErrorContains(t, err, "try again in some seconds", at)
		require.NoError(t, first.Check())
		assert.Equal(t, before, write(at, before), "the same word")
		within(t, first.Now(), open(t, path, start+1).Now())
	}
}

// TestOneStoppedWhileAttaching: a process that stops between taking a seat and cleaning up after dead processes does
// not delay other processes.
func TestOneStoppedWhileAttaching(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	stopped, others := spec(0), 0
	stopped.Settle = func([]byte, func() bool) error {
		for range 3 {
			open(t, path, 0)
			others++
		}
		return nil
	}
	f, err := Open(path, stopped)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, 3, others)
}
