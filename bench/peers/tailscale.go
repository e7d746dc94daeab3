package peers

import "tailscale.com/util/limiter"

var tailscaleLRU = Peer{
	Name:    "tailscale util/limiter",
	Module:  "tailscale.com",
	Package: true,
	How:     "Size twice the keys, so that none is forgotten, and no overdraft",
	New: func(limit Limit, keys int) (Limiter, error) {
		return &limiter.Limiter[string]{Size: 2 * keys, Max: int64(limit.Burst), RefillInterval: limit.every()}, nil
	},
	Cannot: map[Ability]string{Cost: "a request is one token"},
}
