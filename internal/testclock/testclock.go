// Package testclock has a clock that tests move, for the tests of packages that put limits in front of servers and
// clients.
package testclock

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Clock stands still until the test moves it, except after Hurry. It is safe for concurrent use.
type Clock struct{ nanos, step atomic.Int64 }

// New returns a clock whose time is noon of a fixed day.
func New() *Clock {
	c := new(Clock)
	c.nanos.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

// Now reads the clock.
func (c *Clock) Now() time.Time { return time.Unix(0, c.nanos.Add(c.step.Load())) }

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.nanos.Add(int64(d)) }

// Hurry makes the clock advance by step whenever it is read. A step of 0 ends this mode.
func (c *Clock) Hurry(step time.Duration) { c.step.Store(int64(step)) }

// Pause replaces a wait of d: it moves the clock by d.
func (c *Clock) Pause(ctx context.Context, d time.Duration) error {
	c.Advance(d)
	return ctx.Err()
}

// Limiter returns a small limiter with the clock. It is closed when the test ends.
func (c *Clock) Limiter(t testing.TB, policy engine.Policy, options ...engine.Option) *engine.Limiter {
	t.Helper()
	l, err := engine.New(policy, append([]engine.Option{engine.MaxKeys(1000), engine.ClockFunc(c.Now)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// Spread returns a limiter with the clock and one bucket, which is spread over all processors. It is closed when the
// test ends.
func (c *Clock) Spread(t testing.TB, policy engine.Policy) *engine.Spread {
	t.Helper()
	s, err := engine.NewSpread(policy, engine.ClockFunc(c.Now))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Burst returns a limiter with a burst of n tokens. One token comes back per second.
func (c *Clock) Burst(t testing.TB, n uint64) *engine.Limiter {
	t.Helper()
	return c.Limiter(t, engine.TokenBucket(engine.PerSecond(1), n))
}
