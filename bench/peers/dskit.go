package peers

import (
	"time"

	"github.com/grafana/dskit/limiter"
)

type everyTenant struct{ limit Limit }

func (s everyTenant) Limit(string) float64 { return s.limit.rate() }
func (s everyTenant) Burst(string) int     { return s.limit.Burst }

var dskitTenants = Peer{
	Name:    "grafana/dskit",
	Module:  "github.com/grafana/dskit",
	Package: true,
	How: "limiter.RateLimiter with the same limit for every tenant, looked up again every ten seconds, as in " +
		"its tests",
	New: func(limit Limit, _ int) (Limiter, error) {
		l := limiter.NewRateLimiter(everyTenant{limit}, 10*time.Second)
		return allow(func(key string) bool { return l.AllowN(time.Now(), key, 1) }), nil
	},
	Cannot: map[Ability]string{Bound: "keys are forgotten only when the program asks for it"},
}
