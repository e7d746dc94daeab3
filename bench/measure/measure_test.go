package measure

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/workload"
)

// witness counts how often each request was decided, and allows every third request.
type witness struct {
	mu   sync.Mutex
	seen []int
}

func (w *witness) Decide(_ *workload.Stream, from, to int) (allowed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := from; i < to; i++ {
		w.seen[i]++
		if i%3 == 0 {
			allowed++
		}
	}
	return allowed
}

func load(t *testing.T) (*workload.Stream, *witness) {
	row, err := workload.Find("allowed-1k")
	require.NoError(t, err)
	_, requests := row.Load()
	return requests, &witness{seen: make([]int, requests.Len())}
}

func TestOnceAsksEverythingOnce(t *testing.T) {
	for _, workers := range []int{1, 3} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
			requests, w := load(t)
			s := Once(w, requests)
			assert.Equal(t, requests.Len(), s.Ops)
			assert.Equal(t, (requests.Len()+2)/3, s.Allowed)
			for i, n := range w.seen {
				require.Equal(t, 1, n, "request %d", i)
			}
		}()
	}
}

func TestCountCounts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	requests, w := load(t)
	s := Count(3*requests.Len()+1, w, requests)
	assert.Equal(t, 3*requests.Len()+1, s.Ops)
	sum := 0
	for _, n := range w.seen {
		sum += n
	}
	assert.Equal(t, s.Ops, sum)
}

func TestForStops(t *testing.T) {
	requests, w := load(t)
	s := For(time.Millisecond, w, requests)
	assert.Positive(t, s.Ops)
	assert.Positive(t, s.Nanos)
	assert.InDelta(t, 1.0/3, s.AllowedFraction(), 0.01)
	assert.Equal(t, float64(s.Nanos)/float64(s.Ops), s.PerOp())
}

func TestKeyedAsksForTheKeys(t *testing.T) {
	requests, _ := load(t)
	var asked []string
	k := Keyed{limiterFunc(func(key string) bool { asked = append(asked, key); return len(asked)%2 == 0 })}
	assert.Equal(t, 2, k.Decide(requests, 5, 10))
	for i, key := range asked {
		assert.Equal(t, requests.At(5+i), key)
	}
}

type limiterFunc func(string) bool

func (f limiterFunc) Allow(key string) bool { return f(key) }

func TestSamplesAddUp(t *testing.T) {
	s := Sample{Nanos: 10, Ops: 2, Allowed: 1, Mallocs: 4, Bytes: 8}
	s.Add(Sample{Nanos: 20, Ops: 3, Allowed: 3, Mallocs: 1, Bytes: 2})
	assert.Equal(t, Sample{30, 5, 4, 5, 10}, s)
	assert.Equal(t, []float64{6, 0.8, 1, 2}, []float64{s.PerOp(), s.AllowedFraction(), s.AllocsPerOp(), s.BytesPerOp()})
}
