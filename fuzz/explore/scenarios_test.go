//go:build explore

package explore

import (
	"testing"

	"github.com/weir-go/weir/internal/interleave"
)

// TestScenarios (I1, I2, I3, I4, I5, I7, I9) explores every scenario.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios {
		if s.endless && !interleave.Endless() {
			continue
		}
		interleave.Test(t, s.name, s.large, func() (interleave.Report, error) { return explore(s) })
	}
}
