package fuzz

import (
	"math"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/reference"
)

// drawCharges draws the bound of a key's debt in limits, and the cost of a refusal.
func (c *clerk) drawCharges(t *rapid.T) (options []engine.Option) {
	c.debt = 1 // the default for windows and logs
	if _, ok := c.model(c.present).(*reference.BatchRefill); ok {
		c.debt = 10
	}
	if !c.isLog() && rapid.Bool().Draw(t, "max debt") { // a log would need a longer ring, and thus longer ticks

		c.debt = rapid.Uint64Range(1, 4).Draw(t, "limits")
		options = append(options, engine.MaxDebt(c.debt))
	}
	if _, ok := c.model(c.present).(*reference.Concurrency); ok {
		return options
	}
	c.refusal = rapid.SampledFrom([]engine.RefusalCharge{engine.ChargeNothing, engine.ChargeTheRest,
		engine.ChargePenalty}).Draw(t, "refusals")
	return append(options, engine.ChargeRefusals(c.refusal))
}

// charge charges a key at the latest time. Exactly the tokens that fit under the bound must be charged, and the others
// are lost.
func (c *clerk) charge(t *rapid.T, key string) {
	if !c.charges {
		return
	}
	at := c.clock.nanos.Load()
	if at < c.seen {
		c.sync(t)
	}
	c.seen = max(c.seen, at)
	late := c.seen - at
	n := drawCost(t, 3*c.present.limit)
	if rapid.IntRange(0, 9).Draw(t, "odd charge") == 0 {
		n = rapid.SampledFrom([]uint64{0, math.MaxUint64, 1 << 63}).Draw(t, "charge")
	}
	m := c.models[key].(reference.Debtor)
	charged := m.Charge(c.seen, n, c.debt*c.present.limit)
	wait := time.Duration(m.RetryAfter(c.seen, 1))
	want := engine.Decision{Allowed: wait == 0, Limit: c.present.limit, RetryAfter: wait}
	if wait > 0 {
		want.RetryAfter += time.Duration(late)
	}
	got, lost := c.limiter.Charge(c.limiter.Key(key), n)
	c.requireSame(t, key, want, got, late)
	require.Equal(t, n-charged, lost, "I2: of a charge of %d", n)
	c.calls["charge"]++
	if lost > 0 {
		c.calls["lost"]++
	}
}

// penalize charges the model for a refused request.
func (c *clerk) penalize(m reference.Limit, n uint64) {
	switch c.refusal {
	case engine.ChargeTheRest:
		m.(reference.Debtor).Charge(c.seen, n, c.present.limit)
		c.calls["penalty"]++
	case engine.ChargePenalty:
		m.(reference.Debtor).Charge(c.seen, n, c.debt*c.present.limit)
		c.calls["penalty"]++
	}
}
