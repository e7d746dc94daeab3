//go:build unix

package unixsocket

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestASocketThatIsThere: Listen replaces the file of a socket on which no program listens, and no other file.
func TestASocketThatIsThere(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")

	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	_, err = Listen(path, 0o600)
	require.EqualError(t, err, "another program listens there; stop it, or choose another path")
	require.ErrorIs(t, err, ErrInUse)
	stale.SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())
	require.FileExists(t, path)
	l, err := Listen(path, 0o600)
	require.NoError(t, err, "nobody listens on it")

	require.NoError(t, os.Remove(path))
	other, err := Listen(path, 0o600)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	assert.FileExists(t, path, "it is another's by now")
	require.NoError(t, other.Close())
	assert.NoFileExists(t, path)

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err = Listen(path, 0o600)
	require.EqualError(t, err, "there is a file that is not a socket: remove it, or choose another path")
	assert.FileExists(t, path)
	unbound, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "other"), Net: "unix"})
	require.NoError(t, err)
	defer unbound.Close()
	_, err = Adopt(unbound, path)
	require.EqualError(t, err, path+" is no longer a socket, so no client can connect: remove it")
	adopted, err := Adopt(unbound, filepath.Join(dir, "other"))
	require.NoError(t, err)
	assert.False(t, adopted.FileIsGone())
	require.NoError(t, os.Remove(filepath.Join(dir, "other")))
	assert.True(t, adopted.FileIsGone())
	_, err = Adopt(unbound, filepath.Join(dir, "other"))
	require.ErrorIs(t, err, fs.ErrNotExist)

	_, err = Listen(filepath.Join(dir, "none", "s"), 0o600)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
