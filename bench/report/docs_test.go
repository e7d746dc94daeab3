package report

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/result"
)

// The documents contain exactly the figures of the newest saved run of each machine, newest first. They contain no
// figures written by hand.
func TestTheFiguresAreOfTheNewestRun(t *testing.T) {
	paths, err := filepath.Glob("../../docs/benchmarks/runs/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	slices.Sort(paths)
	slices.Reverse(paths)
	var runs []*result.Run
	kept := map[string]bool{}
	for _, path := range paths {
		machine := filepath.Base(path)[len(time.DateOnly):]
		if kept[machine] {
			continue
		}
		kept[machine] = true
		file, err := os.Open(path)
		require.NoError(t, err)
		defer file.Close()
		run, err := result.Read(file)
		require.NoError(t, err, path)
		runs = append(runs, run)
	}
	for path, write := range map[string]func(string, *result.Run) error{
		"../../docs/benchmarks/figures.md": Document,
		"../../docs/benchmarks.md":         func(path string, r *result.Run) error { return Short(path, r, runs[1:]...) },
	} {
		have, err := os.ReadFile(path)
		require.NoError(t, err)
		copied := filepath.Join(t.TempDir(), filepath.Base(path))
		require.NoError(t, os.WriteFile(copied, have, 0o600))
		require.NoError(t, write(copied, runs[0]))
		want, err := os.ReadFile(copied)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(have), path)
	}
}
