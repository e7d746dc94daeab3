//go:build explore

package spread

import (
	"testing"

	"github.com/weir-go/weir/internal/interleave"
)

// These tests run every interleaving of a few calls on a bucket, with package internal/interleave.
//
//	explore_scenarios_test.go   what is explored
//	explore_world_test.go       the bucket, the threads, and one step
//	explore_rules_test.go       what is checked: U1 to U4
//	explore_mutants_test.go     the bucket with a rule broken

// TestScenarios (U1, U2, U3, U4) explores every scenario and prints what was explored.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios {
		interleave.Test(t, s.name, s.large, func() (interleave.Report, error) {
			return interleave.Explore(newWorld(t, s))
		})
	}
}

// TestMutants requires that every mutant of the bucket is caught.
func TestMutants(t *testing.T) { interleave.Catch(t, ".", mutants) }
