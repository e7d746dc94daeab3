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

// TestLinesAreSorted as far as the lines that are held reach: whoever stands before the other is said by the times, and
// by the lines where these are the same. Each says how late it came.
func TestLinesAreSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	type line struct {
		name         string
		second, late int
	}
	var want []line
	var text strings.Builder
	latest := 0
	for i := range 3 * orderLines {
		second := max(i/8-r.IntN(1+r.IntN(1000)), 0) // up to 8,000 lines too late
		latest = max(latest, second)
		want = append(want, line{fmt.Sprint("c", i), second, latest - second})
		text.WriteString(lineAt(want[i].name, second))
	}
	slices.SortStableFunc(want, func(a, b line) int { return a.second - b.second })
	start := time.Time{}
	i := 0
	for e, err := range entries(NewLog(strings.NewReader(text.String()))) {
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

// TestALineAheadOfItsTimeWaits until the others are there, and those behind it stay as they are.
func TestALineAheadOfItsTimeWaits(t *testing.T) {
	const lines, ahead = 4 * orderLines, 3600
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
	for e, err := range entries(NewLog(strings.NewReader(text.String()))) {
		require.NoError(t, err)
		require.False(t, e.Time.Before(last))
		last = e.Time
		n++
	}
	require.Equal(t, lines, n)
}

// TestALineTooLateToBeSorted is handed on if it is late by a minute, and wrong if by more.
func TestALineTooLateToBeSorted(t *testing.T) {
	const first = 100
	var text strings.Builder
	for range orderLines + 1 {
		text.WriteString(lineAt("a", first))
	}
	text.WriteString(lineAt("late", first-60) + lineAt("too-late", first-61) + lineAt("b", first+1))
	all := clients(t, NewLog(strings.NewReader(text.String())))
	all = slices.DeleteFunc(all, func(s string) bool { return s == "a" })
	require.Len(t, all, 3)
	assert.Equal(t, "late", all[0])
	assert.Regexp(t, fmt.Sprintf(`^line %d: the date \S+ is 1m1s earlier than that of a line that is too far before it to be sorted$`,
		orderLines+3), all[1])
	assert.Equal(t, "b", all[2])
}

// TestWhatIsSortedIsBounded by the text, too, and kept memory is used again.
func TestWhatIsSortedIsBounded(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	log := NewLog(strings.NewReader(strings.Repeat(strings.Replace(lineAt("a", 0), "GET /", "GET /"+long, 1), 500)))
	held, n := 0, 0
	for _, err := range entries(log) {
		require.NoError(t, err)
		o := &log.files[0].order
		held, n = max(held, len(o.queue)+len(o.free)), n+1
		require.LessOrEqual(t, o.bytes, orderBytes+len(long)+100)
	}
	assert.Equal(t, 500, n)
	assert.LessOrEqual(t, held, orderBytes/len(long)+1)
}

// TestAsLogged: the lines stay where they are, and say how late they are.
func TestAsLogged(t *testing.T) {
	text := lineAt("a", 100) + lineAt("b", 3) + lineAt("c", 200) + lineAt("d", 199)
	log := NewLog(strings.NewReader(text))
	log.AsLogged()
	var got []string
	for e, err := range entries(log) {
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%s %v", e.Client, e.Late))
	}
	assert.Equal(t, []string{"a 0s", "b 1m37s", "c 0s", "d 1s"}, got)
}

// endless is a log whose lines come again and again.
type endless struct{ lines, rest string }

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.lines
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// TestSortingDoesNotAllocate once the lines that are held are there.
func TestSortingDoesNotAllocate(t *testing.T) {
	log := NewLog(&endless{lines: lineAt("a", 5) + lineAt("b", 3) + lineAt("c", 4)})
	next := func() {
		if _, err := log.Next(); err != nil {
			t.Error(err)
		}
	}
	for range 3 * orderLines {
		next()
	}
	assert.Zero(t, testalloc.PerCall(next))
}

// TestFilesShareWhatIsHeld: more of them that are open do not take more memory.
func TestFilesShareWhatIsHeld(t *testing.T) {
	var texts []string
	const files = 4
	for range files {
		var text strings.Builder
		for i := range 2 * orderLines {
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
		if n++; n > 3*orderLines { // what a file held that was open alone is gone
			held := 0
			for _, f := range log.files {
				held += len(f.order.queue)
			}
			require.LessOrEqual(t, held, orderLines)
		}
	}
	require.Equal(t, files*2*orderLines, n)
}
