package peers

import (
	"sync"
	"sync/atomic"
	"time"
)

// A counterKey identifies one window of a key.
type counterKey struct {
	name, identifier string
	millis, sequence int64
}

// windows contains counters by key and window, like the limiter of github.com/unkeyed/unkey on a node.
type windows struct {
	counters sync.Map // counterKey to *atomic.Int64
	limit    int64
	length   int64 // length of a window in milliseconds
}

func (w *windows) counter(key string, sequence int64) *atomic.Int64 {
	k := counterKey{"bench", key, w.length, sequence}
	if c, ok := w.counters.Load(k); ok {
		return c.(*atomic.Int64)
	}
	c, loaded := w.counters.LoadOrStore(k, new(atomic.Int64))
	if !loaded {
		w.counters.Delete(counterKey{"bench", key, w.length, sequence - 2})
	}
	return c.(*atomic.Int64)
}

// attempts is how often Allow tries to change a contended counter before it refuses the request.
const attempts = 1000

// Allow estimates the requests in the sliding window, and compares the estimate with the limit. The sliding window
// covers the current window and a fraction of the previous window. The estimate is the requests admitted in the current
// window, plus this fraction of the requests admitted in the previous window.
func (w *windows) Allow(key string) bool {
	now := time.Now().UnixMilli()
	sequence := now / w.length
	current, previous := w.counter(key, sequence), w.counter(key, sequence-1)
	covered := 1 - float64(now%w.length)/float64(w.length)
	for range attempts {
		n := current.Load()
		if n+int64(float64(previous.Load())*covered)+1 > w.limit {
			return false
		}
		if current.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

var unkeyWindows = Peer{
	Name:   "in the way of unkey, sync.Map",
	Module: "standard library",
	How: "an atomic counter for each key and window in a sync.Map, two of which make a sliding window, as unkey's " +
		"service has them in a node: without its store, its metrics and its janitor; a refusal writes nothing",
	New: func(limit Limit, _ int) (Limiter, error) {
		return &windows{limit: int64(limit.Tokens), length: max(limit.Per.Milliseconds(), 1)}, nil
	},
	Cannot: map[Ability]string{Bound: "windows of keys that do not come back stay until a janitor removes them"},
}
