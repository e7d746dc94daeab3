package accesslog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
)

// TestLinesAreSorted: the lines that are held back are sorted by time. Each line reports how late it came. Equal times
// keep their order.
func TestLinesAreSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	type line struct {
		name         string
		second, late int
	}
	var want []line
	var text strings.Builder
	latest := 0
	for i := range 3 * manyLines {
		second := max(i/8-r.IntN(1+r.IntN(1000)), 0) // up to 8,000 lines too late
		latest = max(latest, second)
		want = append(want, line{fmt.Sprint("c", i), second, latest - second})
		text.WriteString(lineAt(want[i].name, second))
	}
	slices.SortStableFunc(want, func(a, b line) int { return a.second - b.second })
	start := time.Time{}
	i := 0
	for e, err := range entries(wide(text.String())) {
		require.NoError(t, err)
		if i == 0 {
			start = e.Time
		}
		got := line{string(e.Client), int(e.Time.Sub(start) / time.Second), int(e.Late / time.Second)}
		require.Equal(t, want[i], got)
		i++
	}
	require.Len(t, want, i)
}

// TestALineAheadOfItsTimeWaits: a line that comes too early waits for the earlier lines. Later lines keep their order.
func TestALineAheadOfItsTimeWaits(t *testing.T) {
	const lines, ahead = 4 * manyLines, 1700
	var text strings.Builder
	for i := range lines {
		second := i / 10
		if i%5000 == 99 {
			second += ahead
		}
		text.WriteString(lineAt(fmt.Sprint("c", i), second))
	}
	var last time.Time
	n := 0
	for e, err := range entries(wide(text.String())) {
		require.NoError(t, err)
		require.False(t, e.Time.Before(last))
		last = e.Time
		n++
	}
	require.Equal(t, lines, n)
}

// wide returns a log that holds back as many lines as possible.
func wide(text string) *Log {
	log := NewLog(strings.NewReader(text))
	log.window = manyLines
	return log
}

// TestALineTooLateForTheWindow: a line that is too late ends the reading with an error. Widen then holds back more
// lines, and finally sorts on disk.
func TestALineTooLateForTheWindow(t *testing.T) {
	for lines, widened := range map[int]int{0: 0, 1: 1, fewLines - 1: 1, fewLines: 2, manyLines - 1: 2, manyLines: 3} {
		name := writeFiles(t, strings.Repeat(lineAt("a", 9), lines)+lineAt("late", 0)+"nonsense\n"+lineAt("b", 10))[0]
		log, err := Open([]string{name}, "")
		require.NoError(t, err)
		log.DisableSorting()
		for range widened {
			for range lines {
				if _, err = log.Next(); err != nil {
					break
				}
			}
			if err == nil {
				_, err = log.Next()
			}
			require.ErrorIs(t, err, ErrUnsorted)
			require.NoError(t, log.Widen())
		}
		all := slices.DeleteFunc(clients(t, log), func(s string) bool { return s == "a" })
		if widened == 3 { // the line that is not an entry comes while the log is sorted
			all[0], all[1] = all[1], all[0]
		}
		require.Equal(t, "late", all[0])
		require.Contains(t, all[1], fmt.Sprintf("line %d: ", lines+2))
		require.Equal(t, "b", all[2])
		require.NoError(t, log.Close())
	}
}

// TestWhatIsSortedIsBounded: the size of the text of the held lines is bounded, too. The memory for the text is reused.
func TestWhatIsSortedIsBounded(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	log := NewLog(strings.NewReader(strings.Repeat(strings.Replace(lineAt("a", 0), "GET /", "GET /"+long, 1), 500)))
	held, n := 0, 0
	for _, err := range entries(log) {
		require.NoError(t, err)
		o := &log.files[0].reorder
		held, n = max(held, len(o.queue)+len(o.free)), n+1
		require.LessOrEqual(t, o.bytes, orderBytes+len(long)+100)
	}
	assert.Equal(t, 500, n)
	assert.LessOrEqual(t, held, orderBytes/len(long)+1)
}

// TestTheOrderOfTheLog: Logged reports the lines in the order of the log, whether the log is sorted in memory or on
// disk.
func TestTheOrderOfTheLog(t *testing.T) {
	names := writeFiles(t, lineAt("a", 100)+lineAt("b", 3)+lineAt("c", 200)+lineAt("d", 199), lineAt("e", 150)+lineAt("f", 150))
	for _, onDisk := range []bool{false, true} {
		log, err := Open(names, "")
		require.NoError(t, err)
		if onDisk {
			require.NoError(t, log.Widen())
			require.NoError(t, log.Widen())
		}
		var logged []string
		log.OnEntry(func(e *Entry) { logged = append(logged, fmt.Sprintf("%s %v", e.Client, e.Late)) })
		assert.Equal(t, []string{"b", "a", "e", "f", "d", "c"}, clients(t, log))
		assert.Equal(t, []string{"a 0s", "b 1m37s", "e 0s", "f 0s", "c 0s", "d 1s"}, logged)
		require.NoError(t, log.Close())
	}
}

// TestSortingDoesNotAllocate: sorting allocates only the memory for the lines that it holds.
func TestSortingDoesNotAllocate(t *testing.T) {
	var text strings.Builder
	for i := range 3 * manyLines {
		text.WriteString(lineAt("a", i+5) + lineAt("b", i+3) + lineAt("c", i+4))
	}
	log := NewLog(strings.NewReader(text.String()))
	log.OnEntry(func(*Entry) {})
	next := func() {
		if _, err := log.Next(); err != nil {
			t.Error(err)
		}
	}
	for range 3 * manyLines {
		next()
	}
	assert.Zero(t, testalloc.PerCall(next))
}

// TestFilesShareWhatIsHeld: open files share one bound on held lines, so more files take no more memory.
func TestFilesShareWhatIsHeld(t *testing.T) {
	var texts []string
	const files = 4
	for range files {
		var text strings.Builder
		for i := range 2 * manyLines {
			text.WriteString(lineAt("a", i))
		}
		texts = append(texts, text.String())
	}
	log, err := Open(writeFiles(t, texts...), "")
	require.NoError(t, err)
	n := 0
	var last time.Time
	for e, err := range entries(log) {
		require.NoError(t, err)
		require.False(t, e.Time.Before(last))
		last = e.Time
		if n++; n > 3*manyLines { // a file held more lines while it was the only open file; by now, they were returned
			held := 0
			for _, f := range log.files {
				held += len(f.reorder.queue)
			}
			require.LessOrEqual(t, held, manyLines)
		}
	}
	require.Equal(t, files*2*manyLines, n)
}
