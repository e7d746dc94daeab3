//go:build unix

package serve

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func pipe(t *testing.T, path string) {
	t.Helper()
	beside := path + "~"
	require.NoError(t, syscall.Mkfifo(beside, 0o600))
	require.NoError(t, os.Rename(beside, path))
}

// writer opens a pipe for writing. It waits until a process opens the pipe for reading.
func writer(t *testing.T, path string) *os.File {
	t.Helper()
	var file *os.File
	require.Eventually(t, func() (open bool) {
		var err error
		file, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0) // fails until there is a reader
		return err == nil
	}, 20*time.Second, time.Millisecond)
	return file
}

// TestARuleFileThatIsAPipe: if the rule file is a pipe, it is read once. The watcher does not wait for another writer.
func TestARuleFileThatIsAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	pipe(t, path)
	started := make(chan *running)
	go func() { started <- startAt(t, path) }()
	file := writer(t, path)
	_, err := file.WriteString("listen: 127.0.0.1:0\n" + one)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	var s *running
	require.Eventually(t, func() bool {
		select {
		case s = <-started:
			return true
		default:
			return false
		}
	}, 20*time.Second, time.Millisecond, "it reads the pipe again")
	assert.Equal(t, 200, s.raw("GET /"))
}

// TestAReloadThatWaitsForAFileDoesNotHoldUpTheEnd: a reload waits for a pipe or a disk. The server can still end at
// once.
func TestAReloadThatWaitsForAFileDoesNotHoldUpTheEnd(t *testing.T) {
	s := start(t, one)
	pipe(t, s.path)
	file := writer(t, s.path) // the watcher has noticed the change and reads
	ended := make(chan struct{})
	go func() { s.stop(); close(ended) }()
	require.Eventually(t, func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, file.Close())
}

// TestAFolderThatIsNeverQuiet: another file in the folder is written all the time. weir still notices a change of the
// rule file.
func TestAFolderThatIsNeverQuiet(t *testing.T) {
	s := start(t, one)
	noise, err := os.Create(filepath.Join(filepath.Dir(s.path), "noise"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = noise.Close() })
	first := s.current.Load()
	text, err := os.ReadFile(s.path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.path, append(text, "# more\n"...), 0o600))
	require.Eventually(t, func() bool {
		_, err := noise.WriteString("more\n")
		return err != nil || s.current.Load() != first
	}, time.Minute, time.Millisecond)
}
