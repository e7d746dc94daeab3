package child

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type sum struct{ A, B int }

var works = map[string]Work{
	"sum":   Of(func(s sum) (int, error) { return s.A + s.B, nil }),
	"cores": Of(func(struct{}) (int, error) { return runtime.GOMAXPROCS(0), nil }),
	"fail":  Of(func(struct{}) (int, error) { return 0, errors.New("no luck") }),
	"panic": Of(func(struct{}) (int, error) { panic("much worse") }),
	"chat":  Of(func(struct{}) (int, error) { os.Stdout.WriteString("hello\n"); return 1, nil }),
	"hang":  Of(func(struct{}) (int, error) { time.Sleep(time.Hour); return 0, nil }),
}

func TestMain(m *testing.M) {
	if Main(works, os.Stdout) {
		return
	}
	os.Exit(m.Run())
}

func do1(t *testing.T, work string, with any) (result int, err error) {
	err = Run(t.Context(), time.Minute, 1, work, with, &result)
	return result, err
}

func TestChildAnswers(t *testing.T) {
	got, err := do1(t, "sum", sum{2, 3})
	require.NoError(t, err)
	assert.Equal(t, 5, got)

	for _, n := range []int{1, 3} {
		var cores int
		require.NoError(t, Run(t.Context(), time.Minute, n, "cores", struct{}{}, &cores))
		assert.Equal(t, n, cores)
	}
}

func TestChildFails(t *testing.T) {
	for work, want := range map[string]string{
		"fail":   "no luck",
		"panic":  "panic: much worse",
		"chat":   `answer "hello\n{`,
		"nobody": "nobody: no such work",
	} {
		_, err := do1(t, work, struct{}{})
		assert.ErrorContains(t, err, want, work)
	}
	_, err := do1(t, "sum", "no numbers")
	assert.ErrorContains(t, err, "cannot unmarshal string")
}

// A child that does not end is killed at its time limit, or when the context ends.
func TestChildIsEnded(t *testing.T) {
	var result int
	err := Run(t.Context(), 50*time.Millisecond, 1, "hang", struct{}{}, &result)
	assert.ErrorContains(t, err, "ended after 50ms without a result")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, Run(ctx, time.Minute, 1, "hang", struct{}{}, &result), context.Canceled)
}
