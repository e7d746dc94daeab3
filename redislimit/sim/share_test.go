package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// Even tiny shares keep the bound of docs/distributed.md when answers are late or lost, or the store is unavailable.
func TestSmallLimitsKeepTheBound(t *testing.T) {
	const ms = time.Millisecond
	for name, change := range map[string]func(*Scenario){
		"late":      func(s *Scenario) { s.RTT, s.Jitter = 60*ms, 50*ms },
		"lost":      func(s *Scenario) { s.Loss = 0.3 },
		"one stall": func(s *Scenario) { s.Away = Span{2000 * ms, 2120 * ms} },
		"gone":      func(s *Scenario) { s.Away = Span{0, s.Time} },
		"back":      func(s *Scenario) { s.Away = Span{500 * ms, 9000 * ms} },
		"stalls":    func(s *Scenario) { s.Away, s.AwayEvery = Span{1000 * ms, 1500 * ms}, 2000*ms },
	} {
		t.Run(name, func(t *testing.T) {
			for nodes := 2; nodes <= 16; nodes++ {
				for limit := 1; limit <= 2*nodes; limit++ {
					r := run(t, func(s *Scenario) {
						s.Nodes, s.Burst, s.Rate = nodes, uint64(limit), engine.Per(float64(limit), 500*time.Millisecond)
						s.Time, s.Load, s.Strategies = 10*time.Second, 20, []Strategy{Strict()}
						change(s)
					})
					o := r.Results[0]
					require.LessOrEqual(t, float64(o.FirstAdmitted), o.Bound, "%d nodes, limit %d", nodes, limit)
					require.True(t, o.Holds, "%d nodes, limit %d: %v beyond, of %v", nodes, limit, o.Worst, o.WorstBound)
					if name == "gone" {
						assert.LessOrEqual(t, float64(o.FirstAdmitted), r.Allowed, "%d nodes, limit %d: rate*T and a burst", nodes, limit)
						assert.Positive(t, o.FirstAdmitted, "%d nodes, limit %d", nodes, limit)
					}
				}
			}
		})
	}
}
