package peers

import "github.com/labstack/echo/v5/middleware"

var echoStore = Peer{
	Name:    "echo",
	Module:  "github.com/labstack/echo/v5",
	Package: true,
	How:     "RateLimiterMemoryStore with its default expiry of three minutes",
	New: func(limit Limit, _ int) (Limiter, error) {
		store := middleware.NewRateLimiterMemoryStoreWithConfig(
			middleware.RateLimiterMemoryStoreConfig{Rate: limit.rate(), Burst: limit.Burst})
		return allow(func(key string) bool {
			ok, err := store.Allow(key)
			return ok && err == nil
		}), nil
	},
	Cannot: map[Ability]string{
		Bound: "a key lives for three minutes, however many there are",
		Cost:  "a request is one token",
	},
}
