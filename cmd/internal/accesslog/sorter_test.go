package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTheSorterSorts: the order is by time, then by file, then by line. It does not matter how many entries fit into
// memory, or how many runs are merged.
func TestTheSorterSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &sorter{maxMemory: rapid.IntRange(1, 2000).Draw(t, "room"), maxRuns: rapid.IntRange(2, 4).Draw(t, "runs")}
		defer s.Close()
		type entry struct {
			second int64
			file   int
			client string
		}
		var want []entry
		for i := range rapid.IntRange(0, 200).Draw(t, "entries") {
			e := entry{rapid.Int64Range(0, 20).Draw(t, "second"), rapid.IntRange(0, 2).Draw(t, "file"), fmt.Sprint("c", i)}
			want = append(want, e)
			require.NoError(t, s.add(&Entry{Client: []byte(e.client), Time: time.Unix(e.second, 0), file: e.file}))
			for level := 1; level < len(s.runs); level++ {
				require.LessOrEqual(t, len(s.runs), s.maxRuns*8)
			}
		}
		slices.SortStableFunc(want, func(a, b entry) int {
			if a.second != b.second {
				return int(a.second - b.second)
			}
			return a.file - b.file
		})
		sorted := s.entries()
		var got []entry
		for {
			e, err := sorted.next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			got = append(got, entry{e.Time.Unix(), e.file, string(e.Client)})
		}
		require.Equal(t, want, got)
		require.True(t, len(want) == 0 || sorted.progress() == 1)
	})
}

// TestARecordIsItsEntry: a record has everything that its entry has.
func TestARecordIsItsEntry(t *testing.T) {
	want := Entry{Client: []byte("192.0.2.1"), Time: time.Unix(1, 2).UTC(), Method: []byte("GET"), Target: []byte("/\x00\xff"),
		Proto: []byte("HTTP/1.1"), Host: []byte("h"), Status: 429, Size: 1 << 40, Late: time.Hour, line: 7, file: 3,
		Headers: []Header{{"User-Agent", []byte("x")}, {"X-A", bytes.Repeat([]byte("y"), MaxLine)}, {"X-A", []byte{}}}}
	var got Entry
	got.parse(recordOf(appendEntry(nil, &want)), map[string]string{})
	assert.Equal(t, want, got)
}

// TestAStreamCanBeReadAgain: a second reading of a stream begins with the bytes that the first reading has copied. It
// continues with the rest of the stream.
func TestAStreamCanBeReadAgain(t *testing.T) {
	const text = "abcdefghij"
	s := &spool{stream: io.NopCloser(iotest.OneByteReader(strings.NewReader(text)))}
	for n := range len(text) {
		got := make([]byte, n)
		_, err := io.ReadFull(s, got)
		require.NoError(t, err)
		require.Equal(t, text[:n], string(got))
		require.NoError(t, s.rewind())
	}
	got, err := io.ReadAll(s)
	require.NoError(t, err)
	assert.Equal(t, text, string(got))
	require.NoError(t, s.Close())
}

// TestNoRoomForTheCopyOfAStream: without room for the copy, a stream can be read once; only reading it again is an
// error.
func TestNoRoomForTheCopyOfAStream(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/missing")
	log := NewLog(strings.NewReader(lineAt("a", 1)))
	assert.Equal(t, []string{"a"}, clients(t, log))
	assert.ErrorContains(t, log.Widen(), "set TMPDIR")
}

// TestNoRoomToSort: if there is no room to sort, the error says what to do.
func TestNoRoomToSort(t *testing.T) {
	s := &sorter{maxMemory: 1, maxRuns: 2}
	t.Setenv("TMPDIR", t.TempDir()+"/missing")
	assert.ErrorContains(t, s.add(&Entry{}), "the temporary file of the lines that are sorted failed (set TMPDIR")
	t.Setenv("TMPDIR", t.TempDir())
	require.NoError(t, s.add(&Entry{}))
	require.NoError(t, s.Close())
	assert.ErrorIs(t, s.add(&Entry{}), os.ErrClosed)
}
