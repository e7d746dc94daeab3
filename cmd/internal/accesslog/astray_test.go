package accesslog

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dated returns one line dated in each year. For the year 0, it returns a line that is not an entry.
func dated(years ...int) string {
	var text strings.Builder
	for i, year := range years {
		if year == 0 {
			text.WriteString("hello\n")
			continue
		}
		fmt.Fprintf(&text, "192.0.2.%d - - [17/May/%d:10:05:03 +0000] \"GET /%d HTTP/1.1\" 200 1 \"-\" \"-\"\n", i+1, year, i+1)
	}
	return text.String()
}

// outcomes returns the numbers of the lines in order. The number of a skipped line is negated bit by bit (^number).
func outcomes(t *testing.T, log *Log) (all []int) {
	t.Helper()
	for line := 1; ; line++ {
		e, err := log.Next()
		wrong := (*LineError)(nil)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case errors.As(err, &wrong):
			all = append(all, ^wrong.Line)
			assert.Equal(t, line, wrong.Line)
		default:
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprintf("192.0.2.%d /%d", line, line), fmt.Sprintf("%s %s", e.Client, e.Target))
			all = append(all, line)
		}
	}
}

// TestADateThatLeaps: a line whose date is years off is skipped, wherever it is in the log. The exception is a late
// date with which all later lines agree.
func TestADateThatLeaps(t *testing.T) {
	for name, c := range map[string]struct{ years, wrong []int }{
		"none":                     {[]int{2015, 2015, 2015}, nil},
		"in the middle":            {[]int{2015, 2015, 2261, 2015}, []int{3}},
		"first":                    {[]int{2261, 2015, 2015, 2015}, []int{1}},
		"first two":                {[]int{2261, 2261, 2015, 2015, 2015}, []int{1, 2}},
		"last":                     {append(slices.Repeat([]int{2015}, neighbors), 2261), []int{neighbors + 1}},
		"last of few":              {[]int{2015, 2016, 2018}, nil},
		"alone":                    {[]int{2261}, nil},
		"several":                  {[]int{2015, 2261, 2260, 2015, 2015, 2259, 2015}, []int{2, 3, 6}},
		"with a line that is none": {[]int{2015, 2261, 0, 2015}, []int{2, 3}},
		"a long silence":           {[]int{2015, 2018, 2018}, nil},
		"a date of long ago":       {[]int{2015, 2015, 1970, 2015}, []int{3}},
		"most of long ago":         {[]int{2015, 2015, 2015, 1970, 2015}, []int{4}},
		"many agree":               {append([]int{2015}, slices.Repeat([]int{2018}, neighbors)...), nil},
		"many, and back":           {append(append([]int{2015}, slices.Repeat([]int{2018}, neighbors)...), 2015), []int{neighbors + 2}},
		"years that go up":         {[]int{2010, 2012, 2014, 2016, 2018}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var want []int
			for i := range c.years {
				if slices.Contains(c.wrong, i+1) {
					want = append(want, ^(i + 1))
				} else {
					want = append(want, i+1)
				}
			}
			assert.Equal(t, want, outcomes(t, NewLog(strings.NewReader(dated(c.years...)))))
		})
	}
	log := NewLog(strings.NewReader(dated(2015, 2261, 2015, 2015)))
	_, err := log.Next()
	require.NoError(t, err)
	_, err = log.Next()
	assert.EqualError(t, err, "line 2: the date 2261-05-17T10:05:03Z is far from the dates of the lines around it: later "+
		"by more than 8784h0m0s")
	assert.ErrorIs(t, err, ErrAstray)
}

// TestADateFarFromThoseAroundIt: a few lines whose dates are far from all dates around them are skipped. Lines after a
// pause in the log or after a long request are not skipped. Lines of concatenated files or of unordered logs are not
// skipped either.
func TestADateFarFromThoseAroundIt(t *testing.T) {
	const hour, day = 3600, 24 * 3600
	steady := func(from, n int) (all []int) {
		for i := range n {
			all = append(all, from+i)
		}
		return all
	}
	among := func(odd ...int) []int { return slices.Concat(steady(10*day, 20), odd, steady(10*day+20, 20)) }
	mixed := make([]int, 5000)
	r := rand.New(rand.NewPCG(3, 9))
	for i := range mixed {
		mixed[i] = r.IntN(30 * day)
	}
	for name, c := range map[string]struct {
		seconds []int
		wrong   int
	}{
		"an hour ahead":              {among(10*day + hour), 1},
		"half an hour ahead":         {among(10*day + hour/2), 0},
		"four ahead":                 {among(10*day+hour, 10*day+hour+1, 12*day, 11*day), 4},
		"a request of a day":         {among(9*day + hour), 0},
		"two days early":             {among(8 * day), 1},
		"a silence":                  {slices.Concat(steady(0, 20), steady(9*day, 20)), 0},
		"a silence, and a last line": {append(steady(0, 40), 9*day), 0},
		"files in the wrong order":   {slices.Concat(steady(30*day, 20), steady(0, 20), steady(15*day, 20)), 0},
		"a file of one line":         {slices.Concat(steady(30*day, 20), []int{20 * day}, steady(0, 20)), 0},
		"the clock goes back":        {slices.Concat(steady(hour, 20), steady(20, 20)), 0},
		"of any time":                {mixed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for _, second := range c.seconds {
				text.WriteString(lineAt("a", second))
			}
			log := NewLog(strings.NewReader(text.String()))
			require.NoError(t, log.Widen()) // now the log is sorted on disk
			entries, wrong := 0, 0
			for {
				_, err := log.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if errors.Is(err, ErrAstray) {
					wrong++
					continue
				}
				require.NoError(t, err)
				entries++
			}
			assert.Equal(t, c.wrong, wrong)
			assert.Equal(t, len(c.seconds), entries+wrong)
		})
	}
}

// TestADateThatLeapsInOneOfSeveralFiles: one of several files begins with a date that is far off. Nevertheless, the
// file is not put after all others.
func TestADateThatLeapsInOneOfSeveralFiles(t *testing.T) {
	var names []string
	for name, years := range map[string][]int{"a.log": {2261, 2015, 2015}, "b.log": {2016, 2016, 2016}} {
		names = append(names, filepath.Join(t.TempDir(), name))
		require.NoError(t, os.WriteFile(names[len(names)-1], []byte(dated(years...)), 0o600))
	}
	log, err := Open(names, "")
	require.NoError(t, err)
	defer log.Close()
	var years []int
	for {
		e, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if wrong := (*LineError)(nil); errors.As(err, &wrong) {
			continue
		}
		require.NoError(t, err)
		years = append(years, e.Time.Year())
	}
	assert.Equal(t, []int{2015, 2015, 2016, 2016, 2016}, years)
}

// TestFirstLinesThatAreTooLong: the format is found after first lines that are too long.
func TestFirstLinesThatAreTooLong(t *testing.T) {
	long := strings.Repeat("x", 2*MaxLine+7) + "\n"
	log := NewLog(strings.NewReader(long + long + combinedLine + long + combinedLine))
	for _, wrong := range []int{1, 2, 0, 4, 0} {
		_, err := log.Next()
		if wrong > 0 {
			assert.Equal(t, &LineError{"", wrong, ErrLineTooLong}, err)
		} else {
			assert.NoError(t, err)
		}
	}
	_, err := log.Next()
	assert.ErrorIs(t, err, io.EOF)
	assert.Equal(t, "combined", log.Format())
}

func TestRewind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	require.NoError(t, os.WriteFile(path, []byte(dated(2015, 2261, 2015, 2015, 0)), 0o600))
	log, err := Open([]string{path}, "")
	require.NoError(t, err)
	defer log.Close()
	require.NoError(t, log.Rewind(), "before the first")
	for range 3 {
		_, err := log.Next()
		require.NoError(t, err)
		_, err = log.Next()
		require.Error(t, err)
		require.NoError(t, log.Rewind(), "in the middle")
		assert.Equal(t, []int{1, ^2, 3, 4, ^5}, outcomes(t, log))
		require.NoError(t, log.Rewind(), "at the end")
	}
}
