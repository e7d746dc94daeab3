package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSharedFileLost: if the file is no longer at its path, Stats reports that after the next sweep.
func TestSharedFileLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	l, err := sharedLimiter(path)
	require.NoError(t, err)
	defer l.Close()
	l.Sweep()
	require.NoError(t, l.Stats().FileLost)
	require.NoError(t, os.Remove(path))
	l.Sweep()
	assert.ErrorContains(t, l.Stats().FileLost, "engine: Shared: the file was removed or moved while it is in use")
	other, err := sharedLimiter(path)
	require.NoError(t, err)
	defer other.Close()
	other.Sweep()
	assert.NoError(t, other.Stats().FileLost)
	l.Sweep()
	assert.ErrorContains(t, l.Stats().FileLost, "another file has taken the place")
}
