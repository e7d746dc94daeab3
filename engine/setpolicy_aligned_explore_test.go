//go:build explore

package engine

import (
	"fmt"
	"testing"

	"github.com/weir-go/weir/internal/interleave"
)

// TestAChangeOfAlignedWindowsAtEveryStep (I1): during a change of the length, a key gets at most two limits and what
// the faster rate grants.
func TestAChangeOfAlignedWindowsAtEveryStep(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, before := range []string{"nothing", "takes", "is forgotten"} {
			for _, meanwhile := range [][]int{{0}, {1}, {1, 2}, {0, 1, 2}, {61, 63}} {
				name := fmt.Sprintf("shared %v, before %v, meanwhile %v", shared, before, meanwhile)
				t.Run(name, func(t *testing.T) {
					interleave.Inject(func() (call, other func(), check func(string)) {
						k := newChangingKey(t, shared)
						if before != "nothing" {
							k.takesAt(0)
						}
						if before == "is forgotten" {
							k.passes(1)
							k.takes.Sweep()
						}
						return k.changes, func() {
								for _, at := range meanwhile {
									k.takesAt(at)
								}
							}, func(what string) {
								for _, at := range []int{0, 1, 2, 3, 61, 62, 63, 64, 124, 125} {
									k.takesAt(at)
								}
								k.requireFits(what)
							}
					})
				})
			}
		}
	}
}

// TestATakeBesideAChangeOfAlignedWindowsAtEveryStep (I1): if the length changes during a take, a key gets at most two
// limits and what the faster rate grants.
func TestATakeBesideAChangeOfAlignedWindowsAtEveryStep(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, meanwhile := range [][]int{{0}, {1}, {1, 2}, {0, 1, 2}, {61, 63}} {
			t.Run(fmt.Sprintf("shared %v, meanwhile %v", shared, meanwhile), func(t *testing.T) {
				interleave.Inject(func() (call, other func(), check func(string)) {
					k := newChangingKey(t, shared)
					return func() {
							if k.takes.TakeKey(k.takes.KeyUint64(1), 1).Allowed {
								k.grants = append(k.grants, k.clock.now().Sub(k.began))
							}
						}, func() {
							k.changes()
							for _, at := range meanwhile {
								k.takesAt(at)
							}
						}, func(what string) {
							for _, at := range []int{0, 1, 2, 3, 61, 62, 63, 64, 124, 125} {
								k.takesAt(at)
							}
							k.requireFits(what)
						}
				})
			})
		}
	}
}
