package measure

import (
	"time"

	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// An aged table gets Aged times as many keys as its capacity. Then no slot is unused, because all probe windows fill
// before the last of these keys.
const Aged = 5

// openAged returns a limiter whose slots all had earlier keys, which are swept.
func openAged(r *workload.Row, policy engine.Policy, clock engine.Option) (*engine.Limiter, error) {
	// With a token per hour, no earlier key becomes idle while others are added.
	l, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 1), engine.MaxKeys(r.Capacity), engine.Prefault(), clock)
	if err != nil {
		return nil, err
	}
	for i := range uint64(Aged * r.Capacity) {
		l.AllowKey(l.KeyUint64(i))
	}
	// With a token per nanosecond, all of these keys become idle.
	if err := l.SetPolicy(engine.TokenBucket(engine.PerSecond(1e9), 1)); err != nil {
		l.Close()
		return nil, err
	}
	l.Sweep()
	if err := l.SetPolicy(policy); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
