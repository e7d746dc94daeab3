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

// open attaches to a file whose table is one word: its mark.
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
		Begin:  func(memory []byte) error { native.PutUint64(memory, uint64(start)); return nil },
		Mark:   func(memory []byte) (int64, error) { return int64(native.Uint64(memory)), nil },
		Settle: func(memory []byte) error { memory[8]++; return nil },
	}
}

// within says that a time is not before another one, and later by less than the test can have taken.
func within(t *testing.T, at, now int64) {
	t.Helper()
	assert.GreaterOrEqual(t, now, at)
	assert.Less(t, now, at+int64(time.Hour))
}

// TestTheTimeGoesOn: all count on one timeline, whatever their own idea of it; after a boot it goes on at the wall
// clock, or at the table's mark if that is later; and a time that is not to be believed is an error.
func TestTheTimeGoesOn(t *testing.T) {
	const start, day = int64(1_800_000_000e9), 24 * int64(time.Hour)
	path := filepath.Join(t.TempDir(), "table")
	first := open(t, path, start)
	within(t, start, first.Now())
	within(t, first.Now(), open(t, path, start+100*day).Now())

	boot := first.mapped[clockAt:][:8]
	boot[0]++ // as if that had been in another one
	within(t, start+day, open(t, path, start+day).Now())
	binary.NativeEndian.PutUint64(first.Memory(), uint64(start+9*day))
	boot[0]++
	within(t, start+9*day, open(t, path, start+2*day).Now())
	first.mapped[clockAt+16]++ // the time, whose checksum is another now
	within(t, start+9*day, open(t, path, start+2*day).Now())

	binary.NativeEndian.PutUint64(first.Memory(), 1<<63)
	boot[0]++
	_, err := Open(path, spec(start))
	assert.ErrorContains(t, err, "time: the table's mark is at -9223372036854775808 ns")
}

// TestSeats: who is attached has a number that nobody else ever has, and is dead when it has given the file up. Whoever
// comes while nobody is attached settles what the dead have left.
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
	assert.ErrorContains(t, err, "256 limiters have the file")
}

// TestWhatIsNotThereWhileAttaching: an error for which something else is missing than the file, such as a /proc that is
// not mounted, is told as it is.
func TestWhatIsNotThereWhileAttaching(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	without := spec(0)
	without.Mark = func([]byte) (int64, error) { return 0, &os.PathError{Op: "open", Path: "/proc/x", Err: unix.ENOENT} }
	_, err := Open(path, without)
	assert.EqualError(t, err, "open /proc/x: no such file or directory")
}

// TestAFileOfOthers: fields that only one side has, and a text that is longer than its page.
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
	assert.ErrorContains(t, err, "length: the file has 20480 bytes, this process wants 24576")
	long.Fields = append(long.Fields, Field{"policy", string(make([]byte, pageBytes))})
	_, err = Open(path+"2", long)
	assert.ErrorContains(t, err, "bytes as text: want at most 3968")
	long.Bytes = MaxBytes
	_, err = Open(path+"2", long)
	assert.ErrorContains(t, err, "want at most")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing is left of what could not be made")
}
