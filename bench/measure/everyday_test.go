package measure

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

func smaller(t *testing.T, name string) workload.Row {
	row, err := workload.Find(name)
	require.NoError(t, err)
	row.Keys, row.Requests, row.Capacity = 20_000, 40_000, 40_000
	return row
}

// Every call of the everyday row admits all requests, even repeated ones, and allocates nothing.
func TestEverydayCalls(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	row := smaller(t, "everyday")
	before, requests := row.Load()
	for _, name := range Of(&row) {
		if Cannot(&row, name) != "" {
			continue
		}
		d, release, err := Open(&row, name, requests)
		require.NoError(t, err, name)
		Warm(d, before)
		s := Count(3*requests.Len(), d, requests)
		assert.Greater(t, s.AllowedFraction(), 0.999, name)
		if !slices.Contains(handlers(), name) {
			assert.Less(t, s.AllocsPerOp(), 0.01, name)
		}
		release()
	}
}

// TakeAt uses the times of the requests and no other clock. A client that always comes at the same time gets only its
// burst.
func TestTakeAtGoesByTheTimes(t *testing.T) {
	row := smaller(t, "everyday")
	_, requests := row.Load()
	d, release, err := openAt(&row, requests)
	require.NoError(t, err)
	defer release()
	allowed := 0
	for range 1000 {
		allowed += d.Decide(requests, 0, 1)
		d.(*timedDecider).requested.Store(0)
	}
	assert.Equal(t, row.Unhurried().Burst, allowed)
}

// Each address is charged only for its own requests, whichever call decides.
func TestAddressesOfTheEverydayRow(t *testing.T) {
	row := smaller(t, "everyday")
	row.Draw = workload.InTurn // keys that are not addresses
	_, requests := row.Load()
	_, _, err := openAddr(&row, requests)
	assert.ErrorContains(t, err, "client 1: ")
}

// The keys of a returning row are idle when they come back. With the compared subject, they are not idle.
func TestReturningKeysAreIdleAndTheOthersNot(t *testing.T) {
	for _, name := range []string{"returning-1k", "returning-1k/aged"} {
		row, err := workload.Find(name)
		require.NoError(t, err)
		before, requests := row.Load()
		for subject, keys := range map[string]uint64{WeirTSC: 0, WeirNeverIdle: 1000} {
			if Cannot(&row, subject) != "" {
				continue
			}
			d, release, err := Open(&row, subject, requests)
			require.NoError(t, err)
			Warm(d, before)
			s := Once(d, requests)
			assert.Equal(t, requests.Len(), s.Allowed)
			l := d.(Keyed).Limiter.(*engine.Limiter)
			l.Sweep()
			assert.Equal(t, keys, l.Stats().Keys, "%s of %s", subject, name)
			release()
		}
	}
}
