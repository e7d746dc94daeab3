package peers

import (
	"time"

	"github.com/didip/tollbooth/v7/limiter"
)

var tollboothKeys = Peer{
	Name:    "tollbooth",
	Module:  "github.com/didip/tollbooth/v7",
	Package: true,
	How: "Limiter.LimitReached with the key as it is, without its HTTP part; keys expire after an hour, as " +
		"its examples advise",
	New: func(limit Limit, _ int) (Limiter, error) {
		l := limiter.New(&limiter.ExpirableOptions{DefaultExpirationTTL: time.Hour})
		l.SetMax(limit.rate()).SetBurst(limit.Burst)
		return allow(func(key string) bool { return !l.LimitReached(key) }), nil
	},
	Cannot: map[Ability]string{
		Bound: "a key lives for an hour, however many there are",
		Cost:  "a request is one token",
	},
}
