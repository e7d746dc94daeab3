package measure

import (
	"time"

	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// An aged table has had Aged times as many keys as its capacity. Every probe window was full before the last of these
// keys came, so no slot is unused.
const Aged = 5

// openAged returns a limiter whose slots were all used by earlier keys. Sweeps have removed these keys.
func openAged(r *workload.Row, policy engine.Policy, clock engine.Option) (*engine.Limiter, error) {
	// With a token per hour, no earlier key becomes idle while other keys are added.
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
