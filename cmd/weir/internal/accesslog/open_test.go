package accesslog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpenGivesContentNameAndSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	require.NoError(t, os.WriteFile(path, []byte("hello"), 0o600))
	src, err := Open(path)
	require.NoError(t, err)
	content, err := io.ReadAll(src)
	require.NoError(t, err)
	require.NoError(t, src.Close())
	assert.Equal(t, "hello", string(content))
	assert.Equal(t, path, src.Name)
	assert.Equal(t, int64(5), src.Size)
}

func TestOpenSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.log")
	cases := map[string]struct{ path, want string }{
		"missing":   {missing, "there is no file " + missing + ": give the path of an access log, or - for standard input"},
		"directory": {dir, dir + " is a directory: name one log file, plain or gzip"},
		"below a file": {filepath.Join(os.Args[0], "x"),
			"cannot open " + filepath.Join(os.Args[0], "x")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.path)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// A test that runs as root can read every file, so the message is checked where
// it is made.
func TestOpenExplainsPermissions(t *testing.T) {
	err := explainOpen("secret.log", &fs.PathError{Op: "open", Path: "secret.log", Err: fs.ErrPermission})
	assert.EqualError(t, err, "no permission to read secret.log: run as a user who may, or change the file's mode")
	other := errors.New("odd")
	assert.ErrorIs(t, explainOpen("x", other), other)
}
