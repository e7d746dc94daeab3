package measure

import (
	"math"
	"time"

	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// openNeverIdle returns weir with a limit under which no key is idle within a minute of its last request, and no
// request is refused. The row of returning keys is compared with it.
func openNeverIdle(r *workload.Row) (Decider, func(), error) {
	l, err := weirOf(r, engine.TokenBucket(engine.Per(1, time.Minute), math.MaxUint32), engine.ClockTSC())
	if err != nil {
		return nil, nil, err
	}
	return Keyed{Limiter: l}, closing(l), nil
}
