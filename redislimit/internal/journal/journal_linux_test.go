package journal

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func begin(t *testing.T, stem string) *Journal {
	t.Helper()
	j, err := Open(stem, "a limit", func(err error) { t.Error(err) })
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func end(t *testing.T, j *Journal) string {
	t.Helper()
	path := j.Path()
	require.NoError(t, j.file.Close())
	j.file, j.owed = nil, nil
	return path
}

func takeOver(t *testing.T, j *Journal) (all []Leftover) {
	t.Helper()
	require.NoError(t, j.TakeOver(func(f Leftover) bool { all = append(all, f); return true }))
	return all
}

func files(t *testing.T, stem string) []string {
	t.Helper()
	all, err := filepath.Glob(stem + "*")
	require.NoError(t, err)
	return all
}

// TestWhatIsNotedIsFound: another process reads the last note of each entry, however often the file was rewritten.
func TestWhatIsNotedIsFound(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "a.rule")
	r := rand.New(rand.NewPCG(1, 2))
	first, want := begin(t, stem), map[Entry]uint64{}
	for range 100_000 {
		e := Entry{Tier: uint8(r.IntN(2)), IsLease: r.IntN(2) == 0, Tokens: r.Uint64N(2), Units: r.Uint64N(2), Key: fmt.Sprint("a\nkey ", r.IntN(500))}
		n := r.Uint64() >> r.IntN(64) * r.Uint64N(2)
		first.Note(e, n)
		if want[e] = n; n == 0 {
			delete(want, e)
		}
	}
	info, err := os.Stat(first.Path())
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(2*minRewrite), "the file does not grow without end")
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	next := begin(t, stem)
	assert.Empty(t, takeOver(t, next), "its process lives")
	path := end(t, first)
	found := takeOver(t, next)
	require.Len(t, found, 1)
	assert.NoError(t, found[0].Err)
	assert.Equal(t, path, found[0].Path)
	assert.Equal(t, want, found[0].Owed)
	assert.NoFileExists(t, path)
	require.NoError(t, next.Close())
	assert.Empty(t, files(t, stem), "nothing is owed")
}

// TestAFileThatIsNotTakenStays: if take returns false for a file, the file is not removed.
func TestAFileThatIsNotTakenStays(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "a")
	first := begin(t, stem)
	first.Note(Entry{Key: "k"}, 7)
	require.NoError(t, first.Close())
	assert.Len(t, files(t, stem), 1, "something is owed")
	next := begin(t, stem)
	for range 2 {
		require.NoError(t, next.TakeOver(func(f Leftover) bool {
			assert.Equal(t, map[Entry]uint64{{Key: "k"}: 7}, f.Owed)
			return false
		}))
	}
	assert.Len(t, takeOver(t, next), 1)
	assert.Empty(t, takeOver(t, next))
}

// TestOfWhomFilesAre: TakeOver leaves files of another stem, of another limit and of another version alone.
func TestOfWhomFilesAre(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "a")
	other, err := Open(stem, "another limit", func(err error) { t.Error(err) })
	require.NoError(t, err)
	other.Note(Entry{Key: "k"}, 7)
	foreign := end(t, other)
	longer := begin(t, stem+".b")
	longer.Note(Entry{Key: "k"}, 7)
	end(t, longer)
	newer := stem + "." + strings.Repeat("A", 26) + suffix
	require.NoError(t, os.WriteFile(newer, []byte("weir debts 2\n..."), 0o600))
	require.NoError(t, os.Symlink(newer, stem+"."+strings.Repeat("B", 26)+suffix))
	j := begin(t, stem)
	all := takeOver(t, j)
	require.Len(t, all, 2)
	for _, f := range all {
		assert.Nil(t, f.Owed)
		assert.ErrorContains(t, f.Err, map[string]string{foreign: `"another limit"`, newer: `"weir debts 2"`}[f.Path])
	}
	assert.Len(t, files(t, stem), 5)
	for path, want := range map[string]string{foreign: stem, newer: stem, stem + suffix: "", "x" + suffix: "", stem: ""} {
		got, is := Stem(path)
		assert.Equal(t, want, got)
		assert.Equal(t, want != "", is)
	}
}

// TestAnEndThatIsMissing: if the end of a file is missing, read returns the records before it.
func TestAnEndThatIsMissing(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "a")
	first := begin(t, stem)
	first.Note(Entry{Key: "k"}, 7)
	first.Note(Entry{Key: "l"}, 8)
	content, err := os.ReadFile(first.Path())
	require.NoError(t, err)
	require.NoError(t, os.Remove(end(t, first)))
	one, j := len(appendRecord(nil, Entry{Key: "k"}, 7)), begin(t, stem)
	path := stem + "." + strings.Repeat("A", 26) + suffix
	for length := range len(content) + 1 {
		require.NoError(t, os.WriteFile(path, content[:length], 0o600))
		all := takeOver(t, j)
		assert.NoFileExists(t, path)
		want := max(0, length-len(first.header)) / one
		if want == 0 {
			assert.Empty(t, all, length)
			continue
		}
		require.Len(t, all, 1)
		assert.NoError(t, all[0].Err)
		assert.Len(t, all[0].Owed, want)
	}
	for at := len(content) - one; at < len(content); at++ {
		wrong := append([]byte(nil), content...)
		wrong[at] ^= 0x80
		require.NoError(t, os.WriteFile(path, wrong, 0o600))
		all := takeOver(t, j)
		require.Len(t, all, 1)
		assert.Equal(t, map[Entry]uint64{{Key: "k"}: 7}, all[0].Owed)
		if at > len(content)-one+1 { // otherwise the record is longer, and a part of it is missing
			assert.Error(t, all[0].Err, at)
		}
	}
	require.NoError(t, os.WriteFile(path, append(content, make([]byte, 4096)...), 0o600))
	all := takeOver(t, j)
	require.Len(t, all, 1)
	assert.Len(t, all[0].Owed, 2)
	assert.ErrorContains(t, all[0].Err, "a record of 0 bytes, 4096 bytes before the end")
}

// TestAFileThatCannotBeWritten: the journal reports failed writes once, and makes a new file with all debts when it
// can.
func TestAFileThatCannotBeWritten(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "folder", "a")
	require.NoError(t, os.Mkdir(filepath.Dir(stem), 0o700))
	var told []error
	j, err := Open(stem, "a limit", func(err error) { told = append(told, err) })
	require.NoError(t, err)
	j.Note(Entry{Key: "k"}, 7)
	require.NoError(t, j.file.Close())
	j.Note(Entry{Key: "l"}, 8)
	j.Note(Entry{Key: "m"}, 9)
	require.Len(t, told, 1)
	assert.ErrorIs(t, told[0], os.ErrClosed)
	require.NoError(t, os.Rename(filepath.Dir(stem), filepath.Dir(stem)+".away"))
	for range 3 {
		j.Mend()
	}
	require.Len(t, told, 2)
	assert.ErrorIs(t, told[1], os.ErrNotExist)
	require.NoError(t, os.Rename(filepath.Dir(stem)+".away", filepath.Dir(stem)))
	j.Mend()
	j.Note(Entry{Key: "n"}, 10)
	end(t, j)
	all := takeOver(t, begin(t, stem))
	last := all[len(all)-1]
	for _, f := range all { // the file that could not be written may still exist
		if len(f.Owed) > len(last.Owed) {
			last = f
		}
	}
	assert.Equal(t, map[Entry]uint64{{Key: "k"}: 7, {Key: "l"}: 8, {Key: "m"}: 9, {Key: "n"}: 10}, last.Owed)
	j.Note(Entry{Key: strings.Repeat("k", maxRecord)}, 1) // the journal is closed, so this has no effect
	assert.NoError(t, j.Close())
}

// TestWhatCannotBeOpened: if a file cannot be opened, the error contains the reason.
func TestWhatCannotBeOpened(t *testing.T) {
	_, err := Open("a", "a limit", nil)
	assert.ErrorContains(t, err, `the path "a": want a full one`)
	_, err = Open(filepath.Join(t.TempDir(), "there", "is"), "none", nil)
	assert.ErrorIs(t, err, os.ErrNotExist)
	open := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777))
	_, err = Open(filepath.Join(open, "a"), "", nil)
	assert.ErrorContains(t, err, "everybody can remove files from the folder")
}

// TestProcessesThatAreKilled kills processes at random instructions. The file must then contain the last note that the
// process reported, or the next one.
func TestProcessesThatAreKilled(t *testing.T) {
	const key = "JOURNAL_TEST_STEM"
	if stem := os.Getenv(key); stem != "" {
		j, err := Open(stem, "a limit", func(err error) { panic(err) })
		if err != nil {
			panic(err)
		}
		for n := uint64(1); ; n++ {
			j.Note(Entry{Key: fmt.Sprint(os.Getpid())}, n)
			_, _ = fmt.Printf("%d\n", n) // this number was noted
		}
	}
	stem := filepath.Join(t.TempDir(), "a")
	answered, found := map[string]uint64{}, map[string]uint64{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestProcessesThatAreKilled$")
			cmd.Env = append(os.Environ(), key+"="+stem)
			out, err := cmd.StdoutPipe()
			if !assert.NoError(t, err) || !assert.NoError(t, cmd.Start()) {
				return
			}
			last := uint64(0)
			for n := uint64(0); last < uint64(100+1000*i); {
				if _, err := fmt.Fscanln(out, &n); err != nil {
					break
				}
				last = n
			}
			assert.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
			for n := uint64(0); ; last = n { // the last number that the process printed before it was killed
				if _, err := fmt.Fscanln(out, &n); err != nil {
					break
				}
			}
			var status *exec.ExitError
			assert.True(t, errors.As(cmd.Wait(), &status))
			j, err := Open(stem, "a limit", func(err error) { t.Error(err) })
			if !assert.NoError(t, err) {
				return
			}
			defer j.Close()
			mu.Lock()
			defer mu.Unlock()
			answered[fmt.Sprint(cmd.Process.Pid)] = last
			assert.NoError(t, j.TakeOver(func(f Leftover) bool {
				assert.NoError(t, f.Err)
				for e, n := range f.Owed {
					found[e.Key] = n
				}
				return true
			}))
		})
	}
	all.Wait()
	assert.Equal(t, len(answered), len(found))
	for pid := range maps.Keys(answered) {
		assert.GreaterOrEqual(t, found[pid], answered[pid], pid)
		assert.LessOrEqual(t, found[pid], answered[pid]+1, pid)
	}
	assert.Empty(t, files(t, stem))
}

// BenchmarkNote measures how much time a file adds when a share admits a request.
func BenchmarkNote(b *testing.B) {
	j, err := Open(filepath.Join(b.TempDir(), "a"), "a limit", func(err error) { b.Error(err) })
	require.NoError(b, err)
	n := uint64(0)
	for b.Loop() {
		n++
		j.Note(Entry{Key: "203.0.113.7"}, n)
	}
	require.NoError(b, j.Close())
}

// A journal that rests has a file only while something is owed.
func TestAJournalRests(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "debts")
	files := func() int {
		files, err := filepath.Glob(stem + "*")
		require.NoError(t, err)
		return len(files)
	}
	for _, before := range []uint64{0, 1} {
		j, err := Open(stem, "a", func(err error) { t.Error(err) })
		require.NoError(t, err)
		j.Note(Entry{Key: "k"}, before)
		j.Rest()
		assert.EqualValues(t, before, files())
		j.Note(Entry{Key: "k"}, 0)
		assert.Zero(t, files())
		assert.Empty(t, j.Path())
		j.Mend()
		assert.Zero(t, files())
		j.Note(Entry{Key: "k"}, 3)
		j.Note(Entry{Key: "l"}, 4)
		j.Note(Entry{Key: "k"}, 0)
		assert.Equal(t, 1, files())
		if before == 0 {
			j.Note(Entry{Key: "l"}, 0)
			require.NoError(t, j.Close())
			assert.Zero(t, files())
			continue
		}
		require.NoError(t, j.Close())
		j.Note(Entry{Key: "l"}, 0)
		assert.Equal(t, 1, files(), "of another process by now")
	}
}
