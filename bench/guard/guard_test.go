package guard

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
)

// TestGuard measures times, so it must run alone: `make bench-guard`.
func TestGuard(t *testing.T) {
	if os.Getenv("WEIR_GUARD") == "" {
		t.Skip("it measures: make bench-guard")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	bounds, err := Bounds()
	require.NoError(t, err)
	for _, b := range bounds {
		t.Run(b.Row.Name+"/"+b.Name, func(t *testing.T) { assert.NoError(t, b.Check()) })
	}
}

type changed struct {
	peers.Limiter
	ask func(l peers.Limiter, key string) bool
}

func (c changed) Allow(key string) bool { return c.ask(c.Limiter, key) }

// change returns a bound. Its guarded subject is the floor, but with the function ask as its method Allow.
func change(t *testing.T, ask func(l peers.Limiter, key string) bool) Bound {
	row, err := workload.Find("allowed-1k")
	require.NoError(t, err)
	return Bound{
		Row: row, Name: measure.FloorPrecise, Floor: measure.FloorPrecise, Most: 3,
		Open: func(row *workload.Row, name string, requests *workload.Stream) (measure.Decider, func(), error) {
			d, release, err := measure.Open(row, name, requests)
			require.NoError(t, err)
			return measure.Keyed{Limiter: changed{d.(measure.Keyed).Limiter, ask}}, release, nil
		},
	}
}

// The variable kept stores an allocation, so that the compiler cannot leave it out.
var kept atomic.Pointer[[8]byte]

// The guard's error says what is wrong with a subject.
func TestGuardNotices(t *testing.T) {
	slow := change(t, func(l peers.Limiter, key string) bool {
		for range 99 {
			l.Allow(key)
		}
		return l.Allow(key)
	})
	assert.ErrorContains(t, slow.Check(), "in 61 rounds): want at most 3", "a hundred times slower")

	lost := Bound{Row: workload.Row{Name: "returning-1k/0.9"}, Found: 1.01}
	assert.ErrorContains(t, lost.Check(), "% of the requests found the record of their key: want at least 101 %")

	wrong := change(t, func(l peers.Limiter, key string) bool { return l.Allow(key) && key[0] != 't' })
	assert.ErrorContains(t, wrong.Check(), "% of the decisions were allowed: want 100 %")

	wasteful := change(t, func(l peers.Limiter, key string) bool { kept.Store(new([8]byte)); return l.Allow(key) })
	assert.ErrorContains(t, wasteful.Check(), "objects allocated a decision: want none")
}

// No kind of decision allocates.
func TestNoCallAllocates(t *testing.T) {
	calls, err := experiment.MeasureCalls(struct{}{})
	require.NoError(t, err)
	assert.Len(t, calls, 6)
	for _, c := range calls {
		assert.Less(t, c.Allocs, 0.001, c.Name)
	}
}
