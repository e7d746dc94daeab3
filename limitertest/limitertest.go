package limitertest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/limitertest/check"
)

type (
	// A Limit is the limit of one key.
	Limit = check.Limit
	// A Promise is the rule that a limiter claims to enforce.
	Promise = check.Promise
	// An Event is a request and the decision about it.
	Event = check.Event
	// A Report says what is wrong with a log.
	Report = check.Report
)

// These are the promises. Package check documents each of them.
const (
	Bucket          = check.Bucket
	BatchRefill     = check.BatchRefill
	FixedWindow     = check.FixedWindow
	AlignedWindow   = check.AlignedWindow
	SlidingEstimate = check.SlidingEstimate
	SlidingExact    = check.SlidingExact
	LeakyQueue      = check.LeakyQueue
)

// Check compares a log of decisions exactly with a promise. It returns an error if a number of the limit is out of
// range. The function check.Log does the same, but does not link package testing.
func Check(l Limit, p Promise, log []Event) (Report, error) { return check.Log(l, p, log) }

// A Decision is the answer to a request.
type Decision struct {
	Allowed bool
	// RetryAfter is the time after which a refused request passes, if the key gets no other request meanwhile. It is
	// negative if the limiter does not report the time, or if the request can never pass. It is ignored if the request
	// is allowed.
	RetryAfter time.Duration
	// Wait is how long an admitted request must be held, for a LeakyQueue.
	Wait time.Duration
}

// A Limiter is the limiter under test, usually a small adapter. All methods are called from many goroutines.
type Limiter interface {
	// Take decides a request of n tokens. The number n may be 0, negative or huge. If Costs is skipped, n is always 1.
	// An error of the limiter counts as a refusal.
	Take(key string, n int64) Decision
}

// A TakeFunc is a Limiter that has only the method Take.
type TakeFunc func(key string, n int64) Decision

// Take calls the function.
func (f TakeFunc) Take(key string, n int64) Decision { return f(key, n) }

// A ClockedLimiter has its own clock, which stands still until the test moves it. With [Config.Outside], the test uses
// this clock instead of the clock of a bubble. This is for a limiter in a server with sockets, or with an injected
// clock. Each limiter that New returns must have its own clock, which begins between 2000 and 2100.
type ClockedLimiter interface {
	Limiter
	Now() time.Time
	Advance(d time.Duration)
}

// A TimedLimiter gets the time from its caller. The subtest Clock tests callers whose time goes back or leaps.
type TimedLimiter interface {
	Limiter
	TakeAt(key string, n int64, at time.Time) Decision
}

// A Refunder gives tokens back. The subtest Cancel tests it.
type Refunder interface {
	Limiter
	Refund(key string, n int64)
}

// A Reserver promises tokens for later. The subtest Cancel tests it.
type Reserver interface {
	Limiter
	// Reserve returns how long the request must wait, and a function that cancels the reservation. ok is false if the
	// request can never pass.
	Reserve(key string, n int64) (wait time.Duration, cancel func(), ok bool)
}

// A Waiter waits for tokens until its context is done. The subtest Cancel tests it.
type Waiter interface {
	Limiter
	Wait(ctx context.Context, key string, n int64) error
}

// A Config says which limiter to test and what it promises.
type Config struct {
	// New returns a limiter with the limit, or nil if the limit is not supported. It is called in a testing/synctest
	// bubble. Close the limiter by tb.Cleanup, and report failures by tb.Fatal.
	New func(tb testing.TB, l Limit) Limiter
	// Promise is the rule that the limiter claims to enforce.
	Promise Promise
	// Limits are the limits to test. If Limits is empty, Test uses the limits that the function [Limits] returns.
	Limits []Limit
	// Keys is how many keys the limiter must be able to store at once; 0 means 10,000. Leak uses 100 times as many
	// keys, but at least 200,000, and not all at once.
	Keys int
	// EarlyBy returns by how much the limiter may admit a request too early. LateBy returns for how long it may refuse
	// a request although there is room. Use durations that the limiter's documentation states, 0 to ten years. A nil
	// function means 0.
	//
	// Do not use LateBy for a FixedWindow limiter with windows longer than Per. The model would count requests at the
	// end of a long window in the next window. For such limits, let New return nil.
	EarlyBy, LateBy func(Limit) time.Duration
	// RetryUnit is the unit to which RetryAfter is rounded up, such as a second; 0 means exact.
	RetryUnit time.Duration
	// Skip has the subtests that the limiter does not promise to pass, each with a reason to print. Parts of Cancel are
	// named Cancel/Refund, Cancel/Reserve, Cancel/Order and Cancel/Wait.
	Skip map[string]string
	// Outside means that the limiter does not use the time of package time, for example because the limiter is in
	// another process. Test then uses no bubble. Unless the limiter is a [ClockedLimiter], subtests in which time must
	// pass are skipped, except Real. Burst, Keys, Costs and Linear then use only limits with a Per of a day or more, so
	// that no tokens come back during the test.
	Outside bool
}

// Limits returns the limits that Test uses if its Config has no limits.
func Limits() []Limit {
	return []Limit{
		{Tokens: 1, Per: day, Burst: 1}, {Tokens: 5, Per: 7 * day, Burst: 5}, {Tokens: 5, Per: time.Hour, Burst: 3},
		{Tokens: 10, Per: time.Minute, Burst: 10}, {Tokens: 1, Per: time.Second, Burst: 1},
		{Tokens: 10, Per: time.Second, Burst: 20}, {Tokens: 7, Per: 1300 * time.Millisecond, Burst: 5},
		{Tokens: 100, Per: time.Second, Burst: 100}, {Tokens: 100, Per: 100 * time.Millisecond, Burst: 50},
		{Tokens: 1e6, Per: time.Second, Burst: 1000}, {Tokens: 1e9, Per: time.Second, Burst: 1e5},
	}
}

// A subtest is a part of Test with a name.
type subtest struct {
	name      string
	run       func(*suite, *testing.T)
	needsTime bool // the subtest needs time to pass in a bubble
}

// subtests has the subtests, in the order in which they run.
var subtests = []subtest{
	{"Burst", (*suite).burst, false},
	{"Bound", (*suite).bound, true},
	{"Conforming", (*suite).conforming, true},
	{"Keys", (*suite).keys, false},
	{"Forget", (*suite).forget, true},
	{"Costs", (*suite).costing, false},
	{"Retry", (*suite).retry, true},
	{"Clock", (*suite).clock, true},
	{"Cancel", (*suite).cancel, true},
	{"Linear", (*suite).linear, false},
	{"Real", (*suite).real, false},
	{"Leak", (*suite).leak, true},
}

// cancelParts has the names of the parts of Cancel, for Config.Skip.
var cancelParts = []string{"Cancel/Refund", "Cancel/Reserve", "Cancel/Order", "Cancel/Wait"}

// check returns what is wrong with a Config.
func (c Config) check() error {
	if c.New == nil {
		return fmt.Errorf("limitertest: Config.New is nil")
	}
	if c.Keys < 0 || c.Keys > 1<<24 {
		return fmt.Errorf("limitertest: Config.Keys is %d: want 0 to %d", c.Keys, 1<<24)
	}
	if c.RetryUnit < 0 || c.RetryUnit > maxTolerance {
		return fmt.Errorf("limitertest: Config.RetryUnit is %v: want 0 to %v", c.RetryUnit, maxTolerance)
	}
	for _, l := range c.Limits {
		if err := l.Check(c.Promise); err != nil {
			return fmt.Errorf("limitertest: Config.Limits: %w", err)
		}
	}
	for name, reason := range c.Skip {
		if !slices.ContainsFunc(subtests, func(p subtest) bool { return p.name == name || slices.Contains(cancelParts, name) }) {
			return fmt.Errorf("limitertest: Config.Skip: there is no subtest %q", name)
		}
		if reason == "" {
			return fmt.Errorf("limitertest: Config.Skip: %s has no reason", name)
		}
	}
	return Limit{Tokens: 1, Per: 1, Burst: 1}.Check(c.Promise)
}

// Test tests a limiter in subtests: see the package comment. Call it outside of a bubble, from a test that is not
// parallel.
func Test(t *testing.T, c Config) {
	t.Helper()
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	s := newSuite(t, c)
	for _, p := range subtests {
		t.Run(p.name, func(t *testing.T) {
			if reason, ok := c.Skip[p.name]; ok {
				t.Skip("not promised:", reason)
			}
			if !s.hasTime && p.needsTime {
				t.Skip("the limiter's time is not package time (Config.Outside)")
			}
			p.run(s, t)
		})
	}
}
