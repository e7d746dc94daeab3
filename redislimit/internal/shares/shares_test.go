package shares

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/engine"
)

// Every algorithm that a store keeps has a share of at least one token.
func TestOf(t *testing.T) {
	for policy, want := range map[engine.Policy]engine.Policy{
		engine.TokenBucket(engine.PerSecond(10), 9):   engine.TokenBucket(engine.PerSecond(2.5), 2),
		engine.TokenBucket(engine.PerSecond(1), 1):    engine.TokenBucket(engine.PerSecond(0.25), 1),
		engine.FixedWindow(12, time.Minute):           engine.FixedWindow(3, time.Minute),
		engine.FixedWindow(12, time.Minute).Aligned(): engine.FixedWindow(3, time.Minute).Aligned(),
		engine.SlidingWindow(12, time.Minute):         engine.SlidingWindow(3, time.Minute),
		engine.SlidingLog(12, time.Minute):            engine.SlidingWindow(3, time.Minute),
	} {
		got, err := Of(policy, 4)
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := Of(engine.BatchRefill(1, time.Second, 1), 4)
	assert.Error(t, err)
}

func TestDebts(t *testing.T) {
	d := NewDebts[string](2, nil)
	assert.Zero(t, d.Begin("a"))
	d.Add("a", 3)
	d.Add("b", 1)
	d.Add("c", 1)
	assert.Zero(t, d.Owed("c"), "one key too many")
	d.Add("a", 2)
	assert.EqualValues(t, 5, d.Begin("a"))
	d.Add("a", 4)
	assert.Zero(t, d.Begin("a"), "one settlement at a time")
	assert.EqualValues(t, 9+1, d.Total(), "with what is being settled")
	d.Forgive("a", 100)
	assert.EqualValues(t, 5, d.Owed("a"), "what is being settled is not forgiven")
	d.End("a", false)
	assert.EqualValues(t, 5, d.Begin("a"), "what was not charged is owed still")
	d.End("a", true)
	assert.Zero(t, d.Owed("a"))
	assert.Equal(t, []string{"b"}, slices.Collect(d.Keys))
	assert.EqualValues(t, 1, d.Begin("b"))
	d.Drop("b")
	d.Add("b", 2)
	d.End("b", true)
	assert.EqualValues(t, 2, d.Owed("b"), "of the settlement before it was dropped")
}

// Added tokens are charged exactly once, no matter which goroutine charges them.
func TestDebtsAreChargedOnce(t *testing.T) {
	d := NewDebts[int](1, nil)
	var all sync.WaitGroup
	charged := make([]uint64, 4)
	for i := range charged {
		all.Go(func() {
			for range 10_000 {
				d.Add(0, 1)
				if n := d.Begin(0); n > 0 {
					charged[i] += n
					d.End(0, true)
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 40_000, charged[0]+charged[1]+charged[2]+charged[3]+d.Owed(0))
}
