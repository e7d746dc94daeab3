package measure

import (
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// aged is the number of keys, for each key that the table is made for, after which no slot is unused: the probe windows
// are full when the last of these keys are placed.
const aged = 5

// openAged returns a limiter in which every slot has belonged to a key. All of these keys are idle, and have been
// swept.
func openAged(r *workload.Row, clock engine.Option) (*engine.Limiter, error) {
	l, err := engine.New(engine.TokenBucket(engine.PerHour(1), 1), engine.MaxKeys(r.Capacity), engine.Prefault(), clock)
	if err != nil {
		return nil, err
	}
	for i := range uint64(aged * r.Capacity) {
		l.AllowKey(l.KeyUint64(i))
	}
	limit := r.Limit()
	if err := l.SetPolicy(engine.TokenBucket(engine.Per(float64(limit.Tokens), limit.Per), 1)); err != nil {
		l.Close()
		return nil, err
	}
	l.Sweep()
	return l, nil
}
