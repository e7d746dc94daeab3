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

func TestOpenKnowsNameAndSize(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	require.NoError(t, os.WriteFile(a, []byte(combinedLine), 0o600))
	require.NoError(t, os.WriteFile(b, []byte(vhostLine), 0o600))

	one, err := Open([]string{a}, "")
	require.NoError(t, err)
	assert.Equal(t, a, one.Name())
	assert.Equal(t, int64(len(combinedLine)), one.Size())
	assert.Empty(t, one.Format(), "nothing was read")

	both, err := Open([]string{a, b}, "")
	require.NoError(t, err)
	assert.Equal(t, "2 files", both.Name())
	assert.Equal(t, int64(len(combinedLine+vhostLine)), both.Size())
	var read int64
	both.Watch(func(_ string, n int64) {
		assert.GreaterOrEqual(t, n, read)
		read = n
	})
	readAll(t, both)
	assert.Equal(t, "combined, vhost_combined", both.Format())
	assert.Equal(t, both.Size(), read, "what was read to detect the formats does not count twice")
	require.NoError(t, both.Close())
}

func TestOpenTakesPatterns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"access.log", "access.log.1", "access[1].log"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(combinedLine), 0o600))
	}
	for pattern, want := range map[string]int{"access.log*": 2, "*": 3, "access.log.?": 1, "access[1].log": 1} {
		log, err := Open([]string{filepath.Join(dir, pattern)}, "")
		require.NoError(t, err)
		assert.Len(t, log.files, want, pattern)
	}
}

func TestOpenSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	missing, there, link := filepath.Join(dir, "missing.log"), filepath.Join(dir, "there.log"),
		filepath.Join(dir, "link.log")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	require.NoError(t, os.Symlink(there, link))
	cases := map[string]struct {
		names []string
		want  string
	}{
		"missing": {[]string{there, missing},
			"there is no file " + missing + ": give the path of an access log, or - for standard input"},
		"directory":    {[]string{dir}, dir + " is a directory: name log files, plain or compressed"},
		"below a file": {[]string{filepath.Join(os.Args[0], "x")}, "cannot open " + filepath.Join(os.Args[0], "x")},
		"given twice": {[]string{there, link},
			link + " is the same file as " + there + ": its requests would count twice"},
		"input twice": {[]string{Stdin, there, Stdin}, "standard input is the same file as standard input"},
		"no match": {[]string{filepath.Join(dir, "*.gz")},
			"there is no file whose name is of the form " + filepath.Join(dir, "*.gz")},
		"bad pattern": {[]string{filepath.Join(dir, "[")}, "syntax error in pattern"},
		"nothing":     {nil, "want the name of an access log"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.names, "")
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// A test that runs as root can read every file, so this test checks the function that makes the message.
func TestOpenExplainsPermissions(t *testing.T) {
	err := explainOpen("secret.log", &fs.PathError{Op: "open", Path: "secret.log", Err: fs.ErrPermission})
	assert.EqualError(t, err, "no permission to read secret.log: run as a user who may, or change the file's mode")
	other := errors.New("odd")
	assert.ErrorIs(t, explainOpen("x", other), other)
}

func TestAFileThatGoesAwayIsAnError(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	require.NoError(t, os.WriteFile(a, []byte(combinedLine), 0o600))
	require.NoError(t, os.WriteFile(b, []byte(vhostLine), 0o600))
	log, err := Open([]string{a, b}, "")
	require.NoError(t, err)
	_, err = log.Fields()
	require.NoError(t, err)
	require.NoError(t, os.Remove(b))
	_, err = log.Next()
	require.NoError(t, err)
	_, err = log.Next()
	assert.ErrorContains(t, err, "there is no file "+b)
	assert.NotErrorIs(t, err, io.EOF)
}
