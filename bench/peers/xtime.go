package peers

import (
	"sync"

	"github.com/puzpuzpuz/xsync/v4"
	"golang.org/x/time/rate"
)

const xtime = "golang.org/x/time"

func newRate(l Limit) *rate.Limiter { return rate.NewLimiter(rate.Limit(l.rate()), l.Burst) }

var rateXsync = Peer{
	Name:    "x/time/rate, xsync map",
	Module:  xtime,
	Package: true,
	How:     "a rate.Limiter for each key in an xsync.Map that is made as large as the keys",
	New: func(limit Limit, keys int) (Limiter, error) {
		limiters := xsync.NewMap[string, *rate.Limiter](xsync.WithPresize(keys))
		return allow(func(key string) bool {
			l, ok := limiters.Load(key)
			if !ok {
				l, _ = limiters.LoadOrStore(key, newRate(limit))
			}
			return l.Allow()
		}), nil
	},
	Cannot: map[Ability]string{Bound: neverForgets},
}

var rateSyncMap = Peer{
	Name:    "x/time/rate, sync.Map",
	Module:  xtime,
	Package: true,
	How:     "a rate.Limiter for each key in a sync.Map, which takes no size",
	New: func(limit Limit, _ int) (Limiter, error) {
		var limiters sync.Map
		return allow(func(key string) bool {
			l, ok := limiters.Load(key)
			if !ok {
				l, _ = limiters.LoadOrStore(key, newRate(limit))
			}
			return l.(*rate.Limiter).Allow()
		}), nil
	},
	Cannot: map[Ability]string{Bound: neverForgets},
}

var rateMutex = Peer{
	Name:    "x/time/rate, mutex map",
	Module:  xtime,
	Package: true,
	How: "a rate.Limiter for each key in a map that is made as large as the keys, under one mutex that is let " +
		"go before the limiter is asked",
	New: func(limit Limit, keys int) (Limiter, error) {
		var mu sync.Mutex
		limiters := make(map[string]*rate.Limiter, keys)
		return allow(func(key string) bool {
			mu.Lock()
			l, ok := limiters[key]
			if !ok {
				l = newRate(limit)
				limiters[key] = l
			}
			mu.Unlock()
			return l.Allow()
		}), nil
	},
	Cannot: map[Ability]string{Bound: neverForgets},
}
