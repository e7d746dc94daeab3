package measure

import (
	"math"
	"time"

	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// openNeverIdle returns weir with a limit under which no key is idle within a minute, for comparison with returning
// keys.
func openNeverIdle(r *workload.Row) (Decider, func(), error) {
	l, err := weirOf(r, engine.TokenBucket(engine.Per(1, time.Minute), math.MaxUint32), engine.ClockTSC())
	if err != nil {
		return nil, nil, err
	}
	return Keyed{Limiter: l}, closeAll(l), nil
}
