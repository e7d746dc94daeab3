//go:build explore

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestNewWindowsOfTheClockCountFromTheLastForgottenOneAtEveryStep (I1): R29. Before any operation of a change of the
// windows' length, a window of the old length ends and a sweep forgets it. The key then owes nothing. But its new
// window must not count from a time before the end of the old window.
func TestNewWindowsOfTheClockCountFromTheLastForgottenOneAtEveryStep(t *testing.T) {
	aligned := func(window time.Duration) *Plan {
		algorithm, err := atomicbucket.NewRoomyWindow(10, 10, window, 2*time.Minute, true)
		require.NoError(t, err)
		plan, err := NewPlan(&algorithm, 0)
		require.NoError(t, err)
		plan.SetLongest(2 * time.Minute)
		return plan
	}
	forgotten := map[bool]bool{}
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = aligned(60 * time.Second) })
		require.Equal(t, Admitted, take(tb, 1, start, 1))
		end := start + int64(time.Minute) - start%int64(time.Minute)
		return func() { tb.Adopt(aligned(61*time.Second), clockAt(start)) },
			func() { tb.Sweep(end, nil) },
			func(what string) {
				_, status := tb.Peek(tb.Find(1), end, 1, 0)
				gone := status.Remaining == 10
				if forgotten[gone] = true; gone {
					require.GreaterOrEqual(t, int64(tb.realigned.Load()), end, "broken: (b): %s", what)
				}
			}
	})
	require.Len(t, forgotten, 2)
}
