package peers

import (
	"context"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
)

var sethvargo = Peer{
	Name:    "sethvargo/go-limiter",
	Module:  "github.com/sethvargo/go-limiter",
	Package: true,
	How: "memorystore with InitialAlloc as large as the keys, counting by the hour, and its default sweep " +
		"every six hours of what is twelve hours old",
	New: func(limit Limit, keys int) (Limiter, error) {
		// The rate is expressed per hour, because v0.7.1 refills Interval/Tokens tokens per interval. For a rate of one
		// token per nanosecond, this quotient would be only one token.
		scale := max(1, time.Hour/limit.Per)
		store, err := memorystore.New(&memorystore.Config{
			Tokens: uint64(limit.Tokens) * uint64(scale), Interval: limit.Per * scale, InitialAlloc: keys,
		})
		ctx := context.Background()
		return allow(func(key string) bool {
			_, _, _, ok, err := store.Take(ctx, key)
			return ok && err == nil
		}), err
	},
	Cannot: map[Ability]string{
		Bound: "keys are forgotten twelve hours after their last request by a sweep under the lock, however many there are",
		Cost:  "a request is one token",
	},
}
