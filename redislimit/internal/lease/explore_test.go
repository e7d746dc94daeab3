//go:build explore

package lease

import (
	"testing"

	"github.com/weir-go/weir/internal/interleave"
)

// The tests in these files explore, with package internal/interleave, every interleaving of a few calls on a lease.
//
//	explore_scenarios_test.go   what is explored
//	explore_thread_test.go      a thread, and its calls as package redislimit makes them
//	explore_store_test.go       the store, and what may be lost on the way
//	explore_world_test.go       all of it, and one step of a thread
//	explore_rules_test.go       what is checked: L1 to L5
//	explore_claim_test.go       claims: their scenarios, their world, and what is checked (L6, L7)
//	explore_mutants_test.go     the lease with a rule broken
//
//	GOWORK=off go test -tags explore -v ./internal/lease          the quick scenarios
//	GOWORK=off go test -tags explore -v ./internal/lease -large   all of them (make explore)

// TestScenarios (L1, L2, L3, L4, L5, L6, L7) explores every scenario and prints what was explored.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios {
		interleave.Test(t, s.name, s.large, func() (interleave.Report, error) {
			w, err := newWorld(s)
			if err != nil {
				return interleave.Report{}, err
			}
			return interleave.Explore(w)
		})
	}
	for _, s := range claimScenarios {
		interleave.Test(t, s.name, false, func() (interleave.Report, error) { return interleave.Explore(newClaimWorld(s)) })
	}
}

// TestMutants requires that every mutant of the lease is caught.
func TestMutants(t *testing.T) { interleave.Catch(t, ".", mutants) }
