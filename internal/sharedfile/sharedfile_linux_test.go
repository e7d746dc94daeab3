package sharedfile

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// open attaches to a file whose table is one word, the watermark.
func open(t *testing.T, path string, start int64) *File {
	f, err := Open(path, spec(start))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	return f
}

func spec(start int64) Spec {
	native := binary.NativeEndian
	return Spec{
		Fields: []Field{{"policy", "one: or two"}, {"keys", "5"}}, Bytes: pageBytes, Start: start,
		Begin: func(memory []byte) error { native.PutUint64(memory, uint64(start)); return nil },
		Mark:  func(memory []byte) (int64, error) { return int64(native.Uint64(memory)), nil },
		Settle: func(memory []byte, alone func() bool) error {
			if alone() {
				memory[8]++
			}
			return nil
		},
	}
}

// within requires that the time now is not before the time at, and less than an hour after it. A test takes less than
// an hour.
func within(t *testing.T, at, now int64) {
	t.Helper()
	assert.GreaterOrEqual(t, now, at)
	assert.Less(t, now, at+int64(time.Hour))
}

// The offsets of the words of the clock in the file.
const (
	bootAt  = clockAt
	aheadAt = clockAt + 16
	checkAt = clockAt + 24
)

// words returns a function that writes a word of the file and returns the previous value.
func words(t *testing.T, path string) (write func(at int64, word uint64) uint64) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, file.Close()) })
	return func(at int64, word uint64) uint64 {
		var b [8]byte
		_, err := file.ReadAt(b[:], at)
		require.NoError(t, err)
		before := binary.NativeEndian.Uint64(b[:])
		binary.NativeEndian.PutUint64(b[:], word)
		_, err = file.WriteAt(b[:], at)
		require.NoError(t, err)
		return before
	}
}

// TestTheTimeGoesOn: all processes use one timeline, whatever their own clocks say. After a boot, the timeline
// continues at the time of the wall clock, or at the table's watermark if the watermark is later. An implausible time
// is an error.
func TestTheTimeGoesOn(t *testing.T) {
	const start, day = int64(1_800_000_000e9), 24 * int64(time.Hour)
	path := filepath.Join(t.TempDir(), "table")
	first, err := Open(path, spec(start))
	require.NoError(t, err)
	second, err := Open(path, spec(start+100*day))
	require.NoError(t, err)
	within(t, start, first.Now())
	within(t, first.Now(), second.Now())
	require.NoError(t, second.Close())
	require.NoError(t, first.Close())

	write := words(t, path)
	alone := func(start int64) int64 {
		f, err := Open(path, spec(start))
		require.NoError(t, err)
		now := f.Now()
		require.NoError(t, f.Close())
		return now
	}
	write(bootAt, 1) // as if the clock had been written in another boot
	within(t, start+day, alone(start+day))
	write(headerBytes, uint64(start+9*day))
	write(bootAt, 1)
	within(t, start+9*day, alone(start+2*day))
	write(aheadAt, 1) // damages the offset: its checksum is wrong now
	within(t, start+9*day, alone(start+2*day))

	write(headerBytes, 1<<63)
	write(bootAt, 1)
	_, err = Open(path, spec(start))
	assert.ErrorContains(t, err, "time: the table's mark is at -9223372036854775808 ns")
}

// TestNoTimelineBesideThatOfOthers: if the page of the clock is damaged or from another boot, a process must not begin
// a new timeline while other processes use the old one.
func TestNoTimelineBesideThatOfOthers(t *testing.T) {
	const start = int64(1_800_000_000e9)
	path := filepath.Join(t.TempDir(), "table")
	first, err := Open(path, spec(start))
	require.NoError(t, err)
	write := words(t, path)
	for _, at := range []int64{bootAt, bootAt + 8, aheadAt, checkAt} {
		before := write(at, 1)
		_, err := Open(path, spec(start+1))
		assert.ErrorContains(t, err, "time: the page of the clock is damaged", at)
		assert.EqualValues(t, 1, write(at, before), "nothing is written")
	}
	within(t, first.Now(), open(t, path, start).Now())
	require.NoError(t, first.Close())
}

func names(t *testing.T, folder string) (all []string) {
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestAMakerLeavesNothing: a file has no name while it is made, so a maker that is killed leaves nothing. (The folder
// of the test is in memory, because a file system on a disk may not support files without a name.)
func TestAMakerLeavesNothing(t *testing.T) {
	folder, err := os.MkdirTemp("/dev/shm", "weir-test-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	making, began := spec(0), 0
	making.Begin = func([]byte) error {
		began++
		assert.Equal(t, []string{".table.lock"}, names(t, folder))
		return nil
	}
	f, err := Open(filepath.Join(folder, "table"), making)
	require.NoError(t, err)
	defer f.Close()
	assert.Equal(t, 1, began)
	assert.Equal(t, []string{"table"}, names(t, folder))
}

// TestDrafts: a file is made without a name or under a temporary name, and never replaces another file.
func TestDrafts(t *testing.T) {
	for name, begin := range map[string]func(string) (draft, error){"named": newNamedDraft, "where it can be": newDraft} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "table")
			for _, want := range []error{nil, unix.EEXIST} {
				d, err := begin(path)
				require.NoError(t, err)
				assert.ErrorIs(t, d.finish(path, spec(0)), want)
			}
			open(t, path, 0)
			assert.Equal(t, []string{"table"}, names(t, filepath.Dir(path)))
		})
	}
}

// TestLookAsAttach: a process that may not attach to a file may not look at it either. Only root may look at the files
// of all users.
func TestLookAsAttach(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "table")
	look := func() error {
		v, err := OpenView(path, func([]Field) (uint64, error) { return pageBytes, nil })
		if err == nil {
			err = v.Close()
		}
		return err
	}
	assert.ErrorIs(t, look(), os.ErrNotExist)
	open(t, path, 0)
	assert.NoError(t, look())
	require.NoError(t, os.Chmod(folder, 0o777))
	_, err := Open(path, spec(0))
	assert.ErrorContains(t, err, "everybody can remove files")
	if os.Geteuid() != 0 {
		assert.EqualError(t, look(), err.Error())
		return
	}
	assert.NoError(t, look())
	require.NoError(t, os.Chown(path, 65534, -1))
	require.NoError(t, os.Chown(folder, 65534, -1))
	assert.NoError(t, look())
}

// TestSeats: each attached process has a number that no other process ever has, and counts as dead when it has released
// the file. A process that attaches calls Settle, which can ask whether it is alone.
func TestSeats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	one := open(t, path, 0)
	assert.EqualValues(t, 1, one.Memory()[8])
	other, err := Open(path, spec(0))
	require.NoError(t, err)
	assert.EqualValues(t, 1, one.Memory()[8], "somebody was there")
	assert.NotEqual(t, one.Claimant(), other.Claimant())
	assert.Equal(t, one.Secret(), other.Secret())
	assert.NotEqual(t, one.Secret(), open(t, path+"2", 0).Secret())
	assert.False(t, one.Dead(one.Claimant()))
	assert.False(t, one.Dead(other.Claimant()))
	assert.False(t, other.Dead(one.Claimant()))
	for _, nobody := range []uint64{0, 1, 77, one.Claimant() + 1<<seatBits, 1<<54 - 1} {
		assert.True(t, one.Dead(nobody), nobody)
	}
	dead := other.Claimant()
	require.NoError(t, other.Close())
	assert.True(t, one.Dead(dead))
	again := open(t, path, 0)
	assert.Equal(t, dead%seats, again.Claimant()%seats, "the same seat")
	assert.NotEqual(t, dead, again.Claimant())
	assert.True(t, one.Dead(dead))
	assert.True(t, again.Dead(dead), "though it has the seat itself")
	for range seats - 2 {
		open(t, path, 0)
	}
	_, err = Open(path, spec(0))
	assert.ErrorContains(t, err, "1024 limiters have the file")
}

// TestWhatIsNotThereWhileAttaching: if anything other than the file itself is missing, such as /proc, Open returns the
// error unchanged.
func TestWhatIsNotThereWhileAttaching(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	f, err := Open(path, spec(0))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	words(t, path)(bootAt, 1)
	without := spec(0)
	without.Mark = func([]byte) (int64, error) { return 0, &os.PathError{Op: "open", Path: "/proc/x", Err: unix.ENOENT} }
	_, err = Open(path, without)
	assert.EqualError(t, err, "open /proc/x: no such file or directory")
}

// TestAFileOfOthers: the fields of a file and of a process differ, or one side has fields that the other side does not
// have, or the text of the fields does not fit into the page.
func TestAFileOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	open(t, path, 0)
	more, less, long := spec(0), spec(0), spec(0)
	more.Fields = append(more.Fields, Field{"tier", "6"})
	_, err := Open(path, more)
	assert.ErrorContains(t, err, `tier: the file has "none", this process wants "6"`)
	less.Fields = less.Fields[:1]
	_, err = Open(path, less)
	assert.ErrorContains(t, err, `keys: the file has "5", this process wants "none"`)
	less = spec(0)
	less.Bytes *= 2
	_, err = Open(path, less)
	assert.ErrorContains(t, err, "length: the file has 45056 bytes, this process wants 49152")
	long.Fields = append(long.Fields, Field{"policy", string(make([]byte, pageBytes))})
	_, err = Open(path+"2", long)
	assert.ErrorContains(t, err, "bytes as text: want at most 3968")
	long.Bytes = MaxBytes
	_, err = Open(path+"2", long)
	assert.ErrorContains(t, err, "want at most")
	assert.Equal(t, []string{"table"}, names(t, filepath.Dir(path)), "nothing is left of what could not be made")
}
