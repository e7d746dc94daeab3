//go:build explore

package shard

import (
	"testing"

	"github.com/weir-go/weir/internal/interleave"
)

// mutants are the code with a rule broken that no scenario of fuzz/explore could show: what follows would take several
// replacements of the plan, beside each other.
var mutants = []interleave.Mutant{
	{"R22", "a step towards the next plan does not look whether that is present by then", "TestAStepTowardsAPlanThatIsPresentByThen", "R22", []interleave.Edit{
		{"shard/sharedplan.go", "if t.planned.Load() != n { // after", "if false { // after"},
	}},
	{"R22", "a step towards the next plan looks for it before the watermark", "TestAStepTowardsAPlanThatIsPresentByThen", "R22", []interleave.Edit{
		{"shard/sharedplan.go", "\twatermark, step := t.watermark.Load(), uint64(1)\n", "\tplanned := t.planned.Load()\n\twatermark, step := t.watermark.Load(), uint64(1)\n"},
		{"shard/sharedplan.go", "if t.planned.Load() != n { // after", "if planned != n { // after"},
	}},
}

// TestMutants requires that each of them is caught.
func TestMutants(t *testing.T) { interleave.Catch(t, "..", mutants) }
