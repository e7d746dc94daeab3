package engine

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	movingRate  = 100
	movingClock = "WEIR_TEST_CLOCK"
)

// movingClocks are the clocks that a worker may have, by their name in the environment variable.
var movingClocks = map[string]Option{"tsc": ClockTSC(), "precise": ClockPrecise()}

// workersLimiter returns the limiter of a worker, with the clock that the environment names.
func workersLimiter(path string) (*Limiter, error) {
	if clock, moves := movingClocks[os.Getenv(movingClock)]; moves {
		return movingLimiter(path, clock)
	}
	return sharedLimiter(path)
}

func movingLimiter(path string, clock Option) (*Limiter, error) {
	return New(TokenBucket(PerSecond(movingRate), sharedBurst), Shared(path), clock, MaxKeys(1000), SweepInterval(time.Millisecond))
}

// TestSharedProcessesKilledWhileTimePasses: if processes are killed, no key gets more than burst + rate * (t + d). d is
// the largest difference between two clocks.
func TestSharedProcessesKilledWhileTimePasses(t *testing.T) {
	const kills, apart = 12, 30 * time.Millisecond
	names := []string{"tsc", "precise"}
	path := filepath.Join(t.TempDir(), "table")
	counts := tally(t, path+".tally")
	began := time.Now()
	survivor, err := movingLimiter(path, ClockPrecise())
	require.NoError(t, err)
	defer survivor.Close()
	start := func(i int) *exec.Cmd {
		t.Setenv(movingClock, names[i%len(names)])
		return worker(t, path)
	}
	workers := []*exec.Cmd{start(0), start(1)}
	for i := range kills {
		for until := counts[decisions].Load() + rand.Uint64N(1000); counts[decisions].Load() < until; {
			runtime.Gosched()
		}
		w := i % len(workers)
		require.NoError(t, workers[w].Process.Signal(syscall.SIGKILL))
		assert.ErrorContains(t, workers[w].Wait(), "killed")
		workers[w] = start(i / len(workers)) // successors of a worker have both clocks in turn
	}
	stopWhenDrained(t, survivor, counts, workers)
	most := sharedBurst + movingRate*(time.Since(began)+apart).Seconds()
	highest := uint64(0)
	for i := range sharedKeys {
		got := counts[i].Load()
		highest = max(highest, got)
		assert.LessOrEqual(t, float64(got), most, "key %d", i)
		assert.GreaterOrEqual(t, got+2*kills, uint64(sharedBurst), "key %d", i)
	}
	assert.Greater(t, highest, uint64(sharedBurst), "no time has passed")
	t.Logf("at most %d of %.1f", highest, most)
	survivor.Sweep()
	o := survivor.table.Occupancy()
	assert.Zero(t, o.Claimed+o.Tentative, "%+v", o)
}
