package sharedfile

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOneMakesTheFile: many processes start at once. One process allocates and fills the file, and all other processes
// attach to it.
func TestOneMakesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	var made atomic.Int64
	s := spec(0)
	begin := s.Begin
	s.Begin = func(memory []byte) error {
		made.Add(1)
		return begin(memory)
	}
	var starting sync.WaitGroup
	var all [24]*File
	for i := range all {
		starting.Go(func() {
			f, err := Open(path, s)
			assert.NoError(t, err)
			all[i] = f
		})
	}
	starting.Wait()
	assert.EqualValues(t, 1, made.Load(), "files were made")
	assert.Equal(t, []string{"table"}, names(t, filepath.Dir(path)))
	for _, f := range all {
		assert.NoError(t, f.Close())
	}
}

// TestAMakerThatDied: a process dies while it makes the file. The next maker takes over the lock file and removes it.
func TestAMakerThatDied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), ".table.lock"), nil, 0o600))
	open(t, path, 0)
	assert.Equal(t, []string{"table"}, names(t, filepath.Dir(path)))
}

// TestAMakerThatIsStopped: a maker is suspended with the lock. Another process waits for a limited time, then makes the
// file without the lock, and does not remove the lock file.
func TestAMakerThatIsStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	unlock, err := lockCreation(path, 0)
	require.NoError(t, err)
	goOn, err := lockCreation(path, 0)
	require.NoError(t, err, "another one makes the file, too")
	goOn()
	assert.Equal(t, []string{".table.lock"}, names(t, filepath.Dir(path)))
	unlock()
	assert.Empty(t, names(t, filepath.Dir(path)))
	assert.Equal(t, 7*time.Second, makeTime(100<<20), "five seconds, and one for 50 MiB")
}

// TestFoldersOfOthers: a file is refused if its folder, or a folder above it, belongs to another user, because that
// user could remove the file. It is also refused if another user has taken the name first. Each error says what to do.
func TestFoldersOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		fmt.Println("TestFoldersOfOthers is skipped: only root gives files to others")
		t.Skip("only root gives files to others")
	}
	const other = 65534
	for name, give := range map[string]func(folder, path string) string{
		"the folder":     func(folder, _ string) string { return folder },
		"one above it":   func(folder, _ string) string { return filepath.Dir(folder) },
		"the file":       func(_, path string) string { return path },
		"its maker's":    func(folder, _ string) string { return filepath.Join(folder, ".none.lock") },
		"a link's place": func(folder, _ string) string { return filepath.Dir(folder) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "own", "folder")
			require.NoError(t, os.MkdirAll(folder, 0o700))
			path := filepath.Join(folder, "table")
			f, err := Open(path, spec(0))
			require.NoError(t, err)
			require.NoError(t, f.Close())
			require.NoError(t, os.WriteFile(filepath.Join(folder, ".none.lock"), nil, 0o600))
			link := filepath.Join(t.TempDir(), "link")
			require.NoError(t, os.Symlink(folder, link))
			require.NoError(t, os.Chown(give(folder, path), other, -1))
			switch name {
			case "its maker's":
				path = filepath.Join(folder, "none")
			case "a link's place":
				path = filepath.Join(link, "table")
			}
			_, err = Open(path, spec(0))
			assert.ErrorContains(t, err, "owner: ")
			assert.ErrorContains(t, err, "belongs to user 65534")
			assert.ErrorContains(t, err, "mkdir -m 700")
		})
	}
}

// TestLinksOfOthers: if another user can change a link on the path to the folder, the path is refused. A folder of that
// user is refused in the same way.
func TestLinksOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	const other = 65534
	for name, make := range map[string]func(t *testing.T, folder, between string) (path string){
		"in a folder of another user": func(t *testing.T, folder, between string) string {
			require.NoError(t, os.Symlink(folder, filepath.Join(between, "link")))
			require.NoError(t, os.Chown(between, other, -1))
			return filepath.Join(between, "link", "table")
		},
		"of another user": func(t *testing.T, folder, between string) string {
			require.NoError(t, os.Symlink(folder, filepath.Join(between, "link")))
			require.NoError(t, os.Chmod(between, 0o777|os.ModeSticky))
			require.NoError(t, os.Lchown(filepath.Join(between, "link"), other, -1))
			return filepath.Join(between, "link", "table")
		},
		"behind another link": func(t *testing.T, folder, between string) string {
			require.NoError(t, os.Symlink(folder, filepath.Join(between, "link")))
			first := filepath.Join(filepath.Dir(between), "first")
			require.NoError(t, os.Symlink("between/../between/link", first))
			require.NoError(t, os.Chown(between, other, -1))
			return filepath.Join(first, "table")
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder, between := filepath.Join(t.TempDir(), "own"), filepath.Join(t.TempDir(), "between")
			require.NoError(t, os.Mkdir(folder, 0o700))
			require.NoError(t, os.Mkdir(between, 0o700))
			_, err := Open(make(t, folder, between), spec(0))
			assert.ErrorContains(t, err, "belongs to user 65534")
		})
	}
	folder := filepath.Join(t.TempDir(), "own")
	require.NoError(t, os.Mkdir(folder, 0o700))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(folder, link))
	f, err := Open(filepath.Join(link, "table"), spec(0))
	require.NoError(t, err, "a link of one's own")
	require.NoError(t, f.Close())
}
