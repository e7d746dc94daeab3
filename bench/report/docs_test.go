package report

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/result"
)

// The documents have the figures of the newest run that is kept, and nothing that was written by hand.
func TestTheFiguresAreOfTheNewestRun(t *testing.T) {
	runs, err := filepath.Glob("../../docs/benchmarks/runs/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, runs)
	file, err := os.Open(slices.Max(runs)) // names begin with the date
	require.NoError(t, err)
	defer file.Close()
	run, err := result.Read(file)
	require.NoError(t, err)
	for path, write := range map[string]func(string, *result.Run) error{
		"../../docs/benchmarks/figures.md": Document, "../../docs/benchmarks.md": Short,
	} {
		have, err := os.ReadFile(path)
		require.NoError(t, err)
		copied := filepath.Join(t.TempDir(), filepath.Base(path))
		require.NoError(t, os.WriteFile(copied, have, 0o600))
		require.NoError(t, write(copied, run))
		want, err := os.ReadFile(copied)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(have), path)
	}
}
