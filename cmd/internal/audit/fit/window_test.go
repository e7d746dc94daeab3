package fit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/limitertest/check"
)

// windowLog returns the log of a server whose windows begin with a request. Requests and answers take at least half a
// millisecond each. One in twenty is delayed by less than held, as on a busy machine.
func windowLog(t *testing.T, per, held time.Duration, seed uint64) (log []Request) {
	random := rand.New(rand.NewPCG(seed, 35))
	c, err := check.New(check.Limit{Tokens: 15, Per: per, Burst: 1}, check.FixedWindow)
	require.NoError(t, err)
	way := func() time.Duration {
		d := 500*time.Microsecond + time.Duration(random.ExpFloat64()*float64(200*time.Microsecond))
		if random.IntN(20) == 0 && held > 0 {
			d += time.Duration(random.Int64N(int64(held)))
		}
		return d
	}
	for now := time.Hour; now < time.Hour+time.Minute; {
		sent := now
		now += way()
		allowed := c.Until("", now, 1) == 0
		c.Add(check.Event{At: now, N: 1, Allowed: allowed})
		now += way()
		log = append(log, Request{Sent: sent, Done: now, Allowed: allowed})
		if !allowed { // wait, and sometimes pause for a long time, as an audit does
			if now += 125 * time.Millisecond; random.IntN(8) == 0 {
				now += time.Duration(random.Int64N(int64(2 * per)))
			}
		}
	}
	return log
}

// TestWindowsAreRounded: on a busy machine, a period is rounded to a common period nearby, and otherwise stays as it
// is.
func TestWindowsAreRounded(t *testing.T) {
	testrace.OneGoroutine(t)
	for _, c := range []struct {
		per, held time.Duration
		seed      uint64
		within    float64 // in seconds
	}{
		{per: 3 * time.Second, seed: 9}, {per: 3 * time.Second, held: 300 * time.Millisecond, seed: 3},
		{per: 2500 * time.Millisecond, seed: 1}, {per: 2500 * time.Millisecond, held: 300 * time.Millisecond, seed: 2},
		{per: 2800 * time.Millisecond, seed: 4, within: 0.1}, {per: 3300 * time.Millisecond, seed: 0, within: 0.1},
	} {
		t.Run(fmt.Sprintf("%v, held up for %v", c.per, c.held), func(t *testing.T) {
			r, err := Log(windowLog(t, c.per, c.held, c.seed), 0)
			require.NoError(t, err)
			assert.Equal(t, check.FixedWindow, r.Limit.Kind)
			assert.Equal(t, uint64(15), r.Limit.Tokens)
			assert.InDelta(t, c.per.Seconds(), r.Limit.Per.Seconds(), c.within)
		})
	}
}

// TestRefusalsThatMayNotCount: on a busy machine, refusals may look charged although they are not. The result then says
// that this is uncertain.
func TestRefusalsThatMayNotCount(t *testing.T) {
	testrace.OneGoroutine(t)
	for _, seed := range []uint64{5, 12} {
		r, err := Log(windowLog(t, 3*time.Second, 600*time.Millisecond, seed), 0)
		require.NoError(t, err)
		assert.Equal(t, r.Limit.Refusals, r.RefusalsUnsure, "seed %d: %+v", seed, r)
	}
}
