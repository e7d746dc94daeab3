package report

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/workload"
)

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
