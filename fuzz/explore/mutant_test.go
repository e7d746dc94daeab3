//go:build explore

package explore

import (
	"testing"

	"github.com/weir-go/weir/internal/interleave"
)

type (
	mutant = interleave.Mutant
	edit   = interleave.Edit
)

// TestMutants requires that every mutant of the protocol is caught.
func TestMutants(t *testing.T) { interleave.Catch(t, "../..", mutants) }
