//go:build explore

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestAnExchangeBesideARefusalAtEveryStep (R10): before any operation of a take, the exchange of a refund moves times
// in the log, which makes room for the take. The take may be refused only if it was decided before the exchange. It
// then returns a wait, and charges what was left at that time.
func TestAnExchangeBesideARefusalAtEveryStep(t *testing.T) {
	const now = start + 7*second
	for name, refusals := range map[string]RefusalCharge{"that costs nothing": Nothing, "that costs": Penalty} {
		t.Run(name, func(t *testing.T) {
			verdicts := map[Verdict]bool{}
			injected(t, func() (call, exchange func(), check func(string)) {
				log, err := atomicbucket.NewSlidingLog(2, 2, 5*time.Second)
				require.NoError(t, err)
				plan, err := NewPlan(&log, 0)
				require.NoError(t, err)
				plan.SetCharges(1, refusals)
				tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = plan })
				p := tb.Find(1)
				require.Equal(t, Admitted, take(tb, 1, start+second, 1))
				later := tb.Take(p, start+3*second, 1, 0)
				require.Equal(t, Admitted, tb.Refund(p, start+3*second, 1, 0, later.Receipt(1, 0, Ends{})).Verdict)
				entry := &tb.ring(p.home)[0]
				exchanged := entry.Peek()
				require.EqualValues(t, (start+second)%(1<<56), exchanged%(1<<56))
				entry.Poke(exchanged + uint64(2*second))
				var o Outcome
				var status atomicbucket.Status
				return func() { o = tb.Decide(p, now, 2, 0, &status) },
					func() { entry.Poke(exchanged) },
					func(what string) {
						verdicts[o.Verdict] = true
						if o.Verdict == Admitted {
							assert.EqualValues(t, 2, taken(tb, 1, now), what)
							return
						}
						assert.Equal(t, Refused, o.Verdict, what)
						assert.Positive(t, status.RetryAfter, what)
						assert.EqualValues(t, btoi(refusals == Penalty), taken(tb, 1, now), what)
					}
			})
			assert.Equal(t, map[Verdict]bool{Admitted: true, Refused: true}, verdicts)
		})
	}
}
