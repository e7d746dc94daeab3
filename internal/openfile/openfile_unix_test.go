//go:build unix

package openfile_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/openfile"
)

// TestNothingIsWaitedFor: for a pipe without a writer, Open returns an empty file without waiting, and Regular returns
// an error.
func TestNothingIsWaitedFor(t *testing.T) {
	folder := t.TempDir()
	pipe, text := filepath.Join(folder, "pipe"), filepath.Join(folder, "text")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(text, []byte("text"), 0o600))
	for name, want := range map[string]string{pipe: "", text: "text"} {
		file, err := openfile.Open(name)
		require.NoError(t, err)
		got, err := io.ReadAll(file)
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
		require.NoError(t, file.Close())
	}
	for _, name := range []string{pipe, folder, os.DevNull} {
		_, _, err := openfile.Regular(name)
		assert.ErrorContains(t, err, name+": want a regular file, got ")
	}
	_, _, err := openfile.Regular(filepath.Join(folder, "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	file, info, err := openfile.Regular(text)
	require.NoError(t, err)
	assert.EqualValues(t, 4, info.Size())
	require.NoError(t, file.Close())
}
