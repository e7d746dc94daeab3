//go:build unix

package actions

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestNobodyIsWaitedFor: the program never waits without a bound for another process. If the file is a pipe, or another
// process keeps the lock, it returns an error.
func TestNobodyIsWaitedFor(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, FileName)
	f := newFixture(t, folder)
	f.add(t, Ban, "192.0.2.7")
	lock, err := os.Open(path + ".lock")
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	_, err = f.End(1, "bob")
	require.ErrorContains(t, err, ".lock: another process holds it")
	require.NoError(t, lock.Close())
	require.NoError(t, os.Remove(path))
	require.NoError(t, unix.Mkfifo(path, 0o600))
	_, err = f.Add(f.of(Ban, "192.0.2.8"), time.Hour)
	require.ErrorContains(t, err, "want a regular file")
	f.Refresh()
	assert.Len(t, f.log.With("want a regular file"), 1)
	assert.Len(t, f.List(), 1, "what is in force stays")
	require.ErrorContains(t, New(f.config).Open(folder), "want a regular file")
}
