package report

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/workload"
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

// The short table of docs/benchmarks.md has the figures of docs/benchmarks/figures.md, and every row
// that was measured there.
func TestResultsAreAmongTheFigures(t *testing.T) {
	results, err := os.ReadFile("../../docs/benchmarks.md")
	require.NoError(t, err)
	figures, err := os.ReadFile("../../docs/benchmarks/figures.md")
	require.NoError(t, err)
	found := map[string]bool{}
	line := regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|[^|]*\\|(.*)\\|$")
	for _, m := range line.FindAllStringSubmatch(string(results), -1) {
		name, cells := m[1], strings.Split(m[2], "|")
		require.Len(t, cells, 4, name)
		found[name] = true
		for i := range 2 {
			nanos, ratio := strings.TrimSuffix(strings.TrimSpace(cells[2*i]), " ns"), strings.TrimSpace(cells[2*i+1])
			_, section, measured := strings.Cut(string(figures), fmt.Sprintf("(%s), GOMAXPROCS %d\n", name, i+1))
			section, _, _ = strings.Cut(section, "\n### ")
			assert.Equal(t, measured, nanos != "", "%s on %d", name, i+1)
			if measured {
				assert.Contains(t, section, fmt.Sprintf("\n| %s | %s | %s |", measure.WeirTSC, nanos, ratio), "%s on %d", name, i+1)
			}
		}
	}
	for _, row := range workload.Rows() {
		measured := strings.Contains(string(figures), fmt.Sprintf("(%s), GOMAXPROCS ", row.Name))
		assert.Equal(t, measured && !row.Batch, found[row.Name], row.Name)
	}
}
