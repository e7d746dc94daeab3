package peers

import (
	"context"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

var ululeMemory = Peer{
	Name:    "ulule/limiter",
	Module:  "github.com/ulule/limiter/v3",
	Package: true,
	How:     "the memory store with its defaults, which forget expired windows every 30 seconds; an empty prefix",
	New: func(limit Limit, _ int) (Limiter, error) {
		store := memory.NewStoreWithOptions(limiter.StoreOptions{CleanUpInterval: limiter.DefaultCleanUpInterval})
		l := limiter.New(store, limiter.Rate{Period: limit.Per, Limit: int64(limit.Tokens)})
		ctx := context.Background()
		return allow(func(key string) bool {
			c, err := l.Get(ctx, key)
			return err == nil && !c.Reached
		}), nil
	},
	Cannot: map[Ability]string{Bound: "what comes between two clean-ups is kept, however much it is"},
}
