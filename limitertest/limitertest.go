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
	// A Limit is what one key may have.
	Limit = check.Limit
	// A Promise is what a limiter says that it enforces.
	Promise = check.Promise
	// An Event is a request and what was decided.
	Event = check.Event
	// A Report says what is wrong with a log.
	Report = check.Report
)

// The promises. Those of package check say what each means.
const (
	Bucket          = check.Bucket
	BatchRefill     = check.BatchRefill
	FixedWindow     = check.FixedWindow
	AlignedWindow   = check.AlignedWindow
	SlidingEstimate = check.SlidingEstimate
	SlidingExact    = check.SlidingExact
	LeakyQueue      = check.LeakyQueue
)

// Check holds a log of decisions against a promise, exactly. It returns an error if the limit has a number that it
// cannot have. It is check.Log, which a program can use without package testing.
func Check(l Limit, p Promise, log []Event) (Report, error) { return check.Log(l, p, log) }

// A Decision is the answer to a request.
type Decision struct {
	Allowed bool
	// RetryAfter is how long after a refusal the same request passes, if the key asks for nothing meanwhile. It is
	// negative if the limiter does not say, or says never. It is not looked at if the request is allowed.
	RetryAfter time.Duration
	// Wait is how long an admitted request is to be held, for a LeakyQueue.
	Wait time.Duration
}

// A Limiter is what is tested: usually a few lines around a limiter. All methods are called from many goroutines.
type Limiter interface {
	// Take decides about a request of n tokens. If Costs is skipped n is always 1; otherwise it may be 0, negative or
	// huge. An error of the limiter counts as a refusal.
	Take(key string, n int64) Decision
}

// A TakeFunc is a Limiter that only takes.
type TakeFunc func(key string, n int64) Decision

// Take calls the function.
func (f TakeFunc) Take(key string, n int64) Decision { return f(key, n) }

// A ClockedLimiter has a clock of its own, which stands still until the test moves it. With [Config.Outside] time
// passes by that clock instead of a bubble's: for a limiter in a server that has sockets, or whose clock is injected.
// Each limiter of New has another clock, which begins between 2000 and 2100.
type ClockedLimiter interface {
	Limiter
	Now() time.Time
	Advance(d time.Duration)
}

// A TimedLimiter is told the time. Clock tests what it makes of callers whose time goes back or leaps.
type TimedLimiter interface {
	Limiter
	TakeAt(key string, n int64, at time.Time) Decision
}

// A Refunder gives tokens back. Cancel tests that.
type Refunder interface {
	Limiter
	Refund(key string, n int64)
}

// A Reserver promises tokens for later. Cancel tests that.
type Reserver interface {
	Limiter
	// Reserve returns when the request may pass, and what gives that up. It is false if there is no such instant.
	Reserve(key string, n int64) (wait time.Duration, cancel func(), ok bool)
}

// A Waiter waits for tokens until its context is done. Cancel tests that.
type Waiter interface {
	Limiter
	Wait(ctx context.Context, key string, n int64) error
}

// A Config says what to test and what it promises.
type Config struct {
	// New returns a limiter of the limit, or nil for a limit that it cannot have. It is called in a testing/synctest
	// bubble; Cleanup of tb closes the limiter. It ends the test by tb.Fatal if something fails.
	New func(tb testing.TB, l Limit) Limiter
	// Promise is what the limiter says that it enforces.
	Promise Promise
	// Limits are the limits to test: those of [Limits] if there are none.
	Limits []Limit
	// Keys is how many keys a limiter of New must be able to tell apart: 10,000 if it is 0. Leak has 100 times as many,
	// not at once, and 200,000 at least.
	Keys int
	// EarlyBy and LateBy are by how much a limiter may admit too early or refuse too long, as its documentation says.
	// Nil means not at all. LateBy does not fit a FixedWindow that is longer than it should be: what comes in the time
	// that it is longer is counted in another window. Let New return nil for such limits.
	EarlyBy, LateBy func(Limit) time.Duration
	// RetryUnit is what RetryAfter is rounded up to, such as a second: exact if it is 0.
	RetryUnit time.Duration
	// Skip has the names of subtests that the limiter does not promise to pass, each with the reason, which is printed.
	// Parts of Cancel have names, too: Cancel/Refund, Cancel/Reserve, Cancel/Order and Cancel/Wait.
	Skip map[string]string
	// Outside says that the limiter's time is not package time: it is in another process, or reads another clock. Then
	// there is no bubble. The subtests for which time must pass are skipped, except Real, unless it is a
	// [ClockedLimiter]. Burst, Keys, Costs and Linear have limits of a day, whose tokens do not come back meanwhile.
	Outside bool
}

// Limits returns the limits that Test uses unless its Config has others.
func Limits() []Limit {
	return []Limit{
		{Tokens: 1, Per: day, Burst: 1}, {Tokens: 5, Per: day, Burst: 5}, {Tokens: 5, Per: time.Hour, Burst: 3},
		{Tokens: 10, Per: time.Minute, Burst: 10}, {Tokens: 1, Per: time.Second, Burst: 1},
		{Tokens: 10, Per: time.Second, Burst: 20}, {Tokens: 7, Per: 3 * time.Second, Burst: 5},
		{Tokens: 100, Per: time.Second, Burst: 100}, {Tokens: 1000, Per: time.Second, Burst: 50},
		{Tokens: 1e6, Per: time.Second, Burst: 1000}, {Tokens: 1e9, Per: time.Second, Burst: 1000},
	}
}

// A part is a subtest.
type part struct {
	name string
	run  func(*suite, *testing.T)
	time bool // it needs time to pass in a bubble
}

// parts are the subtests, in their order.
var parts = []part{
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

// cancels are the parts of Cancel that Config.Skip can name.
var cancels = []string{"Cancel/Refund", "Cancel/Reserve", "Cancel/Order", "Cancel/Wait"}

// check returns what is wrong with a Config.
func (c Config) check() error {
	if c.New == nil {
		return fmt.Errorf("limitertest: Config.New is nil")
	}
	if c.Keys < 0 || c.Keys > 1<<24 {
		return fmt.Errorf("limitertest: Config.Keys is %d: want 0 to %d", c.Keys, 1<<24)
	}
	if c.RetryUnit < 0 {
		return fmt.Errorf("limitertest: Config.RetryUnit is %v: want 0 or more", c.RetryUnit)
	}
	for _, l := range c.Limits {
		if err := l.Check(c.Promise); err != nil {
			return fmt.Errorf("limitertest: Config.Limits: %w", err)
		}
	}
	for name, reason := range c.Skip {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name || slices.Contains(cancels, name) }) {
			return fmt.Errorf("limitertest: Config.Skip: there is no subtest %q", name)
		}
		if reason == "" {
			return fmt.Errorf("limitertest: Config.Skip: %s has no reason", name)
		}
	}
	return Limit{Tokens: 1, Per: 1, Burst: 1}.Check(c.Promise)
}

// Test tests a limiter in subtests: see the comment of the package. Call it from a test function that is not parallel
// and not in a bubble.
func Test(t *testing.T, c Config) {
	t.Helper()
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	s := newSuite(t, c)
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			if reason, ok := c.Skip[p.name]; ok {
				t.Skip("not promised:", reason)
			}
			if !s.timed && p.time {
				t.Skip("the limiter's time is not package time (Config.Outside)")
			}
			p.run(s, t)
		})
	}
}
