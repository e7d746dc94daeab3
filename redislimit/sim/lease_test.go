package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Below the limit, leases falsely refuse almost no tokens, whatever requests cost.
func TestCostsAreNotRefusedFalsely(t *testing.T) {
	for _, costs := range [][]uint64{nil, {2}, {3}, {5}, {9}, {20}, {35}, {60}, {100}, {101}, {200}, {1, 60}, {1, 10, 60}, {5, 150}} {
		for _, load := range []float64{0.5, 0.8} {
			for _, nodes := range []int{4, 16} {
				t.Run(fmt.Sprintf("%d at %gx on %d nodes", costs, load, nodes), func(t *testing.T) {
					results := run(t, func(s *Scenario) {
						s.Costs, s.Load, s.Nodes, s.Time = costs, load, nodes, 10*time.Minute
						s.Strategies = []Strategy{Strict(), Lease()}
					}).Results
					strict, leased := results[0], results[1]
					assert.Empty(t, leased.Note)
					most := 0.001
					if len(costs) > 1 { // the debt of small requests may be just what a large request lacks
						most = 0.0025
					}
					assert.LessOrEqual(t, leased.RefusedShare, most)
					assert.LessOrEqual(t, float64(leased.Calls), 1.01*float64(strict.Calls))
					assert.True(t, leased.Holds)
				})
			}
		}
	}
}
