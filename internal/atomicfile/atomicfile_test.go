package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func says(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// content returns the content of the file. It also checks that the number of files in the folder equals the argument
// alone.
func content(t *testing.T, name string, alone int) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	assert.Len(t, entries, alone, "files in the folder")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

func TestWriteReplacesTheWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, Write(name, says("a long first text")))
	assert.Equal(t, "a long first text", content(t, name, 1))
	require.NoError(t, Write(name, says("short")))
	assert.Equal(t, "short", content(t, name, 1))
}

// TestWriteKeepsTheOldUntilTheEnd: while Write runs, and after it has failed, the file has its old content.
func TestWriteKeepsTheOldUntilTheEnd(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, Write(name, says("old")))
	large := make([]byte, 1<<20) // more than any buffer
	failure := errors.New("the disk is full")
	err := Write(name, func(w io.Writer) error {
		_, err := w.Write(large)
		require.NoError(t, err)
		assert.Equal(t, "old", content(t, name, 2))
		return failure
	})
	assert.ErrorIs(t, err, failure)
	assert.ErrorContains(t, err, "cannot write "+name)
	assert.Equal(t, "old", content(t, name, 1), "and no temporary file")
}

func TestWriteWithoutAFolder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "missing", "report.json")
	assert.ErrorIs(t, Write(name, says("text")), os.ErrNotExist)
	assert.Error(t, Write(t.TempDir(), says("text")), "a folder is no file")
}

func TestWriteKeepsPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are those of Unix")
	}
	folder := t.TempDir()
	plain, beside := filepath.Join(folder, "plain"), filepath.Join(folder, "beside")
	require.NoError(t, os.WriteFile(plain, nil, 0o666))
	require.NoError(t, Write(beside, says("text")))
	assert.Equal(t, mode(t, plain), mode(t, beside), "a new file is as any other, by the umask")
	require.NoError(t, os.Chmod(beside, 0o640))
	require.NoError(t, Write(beside, says("more")))
	assert.Equal(t, os.FileMode(0o640), mode(t, beside))
}

func mode(t *testing.T, name string) os.FileMode {
	t.Helper()
	info, err := os.Stat(name)
	require.NoError(t, err)
	return info.Mode()
}

func TestWriteFollowsLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	folder, elsewhere := t.TempDir(), t.TempDir()
	target, link := filepath.Join(elsewhere, "target"), filepath.Join(folder, "link")
	require.NoError(t, os.WriteFile(target, []byte("old"), 0o600))
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, Write(link, says("new")))
	assert.Equal(t, "new", content(t, target, 1))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink, "the link is still one")
}

// TestWriteToADevice: Write writes to a device directly and does not replace it.
func TestWriteToADevice(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("devices are named as on Unix")
	}
	before := mode(t, os.DevNull)
	require.NoError(t, Write(os.DevNull, says("text")))
	assert.Equal(t, before, mode(t, os.DevNull))
}
