package peers

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/weir-go/weir/internal/tsc"
)

// gcra is the do-it-yourself limiter, with a theoretical arrival time (TAT) per key. The field every is the time
// between two tokens. The field tolerance is how far a TAT may be ahead of the clock.
type gcra struct {
	start     time.Time
	every     int64
	tolerance int64
}

func newGCRA(l Limit) gcra {
	every := int64(l.every())
	return gcra{time.Now(), every, every * int64(l.Burst)}
}

func (g *gcra) next(arrival int64) (int64, bool) { return g.at(int64(time.Since(g.start)), arrival) }

// The method at does the same as the method next, with the argument now as the time of the request.
func (g *gcra) at(now, arrival int64) (int64, bool) {
	arrival = max(arrival, now) + g.every
	return arrival, arrival-now <= g.tolerance
}

var diyXsync = Peer{
	Name:   "diy GCRA, xsync map",
	Module: "github.com/puzpuzpuz/xsync/v4",
	How:    "an atomic word for each key in an xsync.Map that is made as large as the keys; time.Since is the clock",
	New: func(limit Limit, keys int) (Limiter, error) {
		g, words := newGCRA(limit), xsync.NewMap[string, *atomic.Int64](xsync.WithPresize(keys))
		return allow(func(key string) bool {
			word, ok := words.Load(key)
			if !ok {
				word, _ = words.LoadOrStore(key, new(atomic.Int64))
			}
			for {
				old := word.Load()
				next, pass := g.next(old)
				if !pass {
					return false
				}
				if word.CompareAndSwap(old, next) {
					return true
				}
			}
		}), nil
	},
	Cannot: map[Ability]string{Bound: neverForgets},
}

// diyCounter is diyXsync with the time stamp counter, the clock that weir reads by default. It counts a tick as a
// nanosecond. So a comparison with weir shows only the difference between the tables.
var diyCounter = Peer{
	Name:   DIYCounter,
	Module: "github.com/puzpuzpuz/xsync/v4",
	How:    "the same with the processor's bare counter for a clock, which is never calibrated: for the comparison only",
	New: func(limit Limit, keys int) (Limiter, error) {
		g, words := newGCRA(limit), xsync.NewMap[string, *atomic.Int64](xsync.WithPresize(keys))
		if !tsc.Trusted() {
			return nil, errors.New("the kernel does not trust this processor's counter")
		}
		return allow(func(key string) bool {
			word, ok := words.Load(key)
			if !ok {
				word, _ = words.LoadOrStore(key, new(atomic.Int64))
			}
			for {
				old := word.Load()
				next, pass := g.at(int64(tsc.Read()), old)
				if !pass {
					return false
				}
				if word.CompareAndSwap(old, next) {
					return true
				}
			}
		}), nil
	},
	Cannot: map[Ability]string{Bound: neverForgets},
}

// DIYCounter is the name of the do-it-yourself limiter that reads the same clock as weir.
const DIYCounter = "diy GCRA, xsync map, TSC clock"

type shard struct {
	sync.Mutex
	words map[string]int64
	_     [64 - 16]byte
}

var diyShards = Peer{
	Name:   "diy GCRA, 256 mutex shards",
	Module: "standard library",
	How: "a word for each key in one of 256 maps, each made as large as its share and under its own mutex; " +
		"time.Since is the clock",
	New: func(limit Limit, keys int) (Limiter, error) {
		g, seed, shards := newGCRA(limit), maphash.MakeSeed(), new([256]shard)
		for i := range shards {
			shards[i].words = make(map[string]int64, keys/len(shards))
		}
		return allow(func(key string) bool {
			s := &shards[maphash.String(seed, key)%256]
			s.Lock()
			defer s.Unlock()
			next, pass := g.next(s.words[key])
			if pass {
				s.words[key] = next
			}
			return pass
		}), nil
	},
	Cannot: map[Ability]string{Bound: neverForgets},
}
