package limits

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/pause"
	"github.com/weir-go/weir/limits/spec"
)

// A Set checks each request against several limits together. Make one with [New]. All its methods are safe for
// concurrent use.
type Set[R any] struct {
	limits   []*limit[R]
	shadowed []*limit[R] // copies of limits in shadow mode; nil without Options.Modes
	options  Options[R]
	failures atomic.Uint64
	waiting  atomic.Int64
	waiters  waiters // the waiting requests, by key
}

// Options change how a set decides. All fields are optional.
type Options[R any] struct {
	// Skip reports whether a request is exempt from all limits.
	Skip func(R) bool
	// Modes decides the mode of each limit for a request. It returns a function from the index of a limit in the list
	// of [New] to its mode. If Modes is nil or returns nil, all limits are applied as written.
	Modes func(R) func(limit int) Mode
	// OnLimited is called, in the goroutine of the request, for every limit that refuses a request, or would without
	// shadow mode.
	OnLimited func(R, Check[R])
	// OnError is called with every error of a [Source] and of [Limit].Quota.
	OnError func(limit string, err error)
	// Metrics counts outcomes.
	Metrics Metrics
	// Text makes the text of every key ([Check.Text]), and not only of keys that a source needs. This allocates.
	Text bool
	// MaxWaiting is the largest number of requests that may wait for tokens at the same time, for all limits together;
	// 0 means 1,000. Further requests are refused at once, so that a flood does not occupy many connections. For one
	// key of a limit, at most an eighth of this number, rounded up, may wait. So one client cannot take all places.
	MaxWaiting int
	// Jitter is the longest random time, at most 1h, that is added to a RetryAfter, so that refused clients do not come
	// back together.
	Jitter time.Duration
	// Random returns numbers in [0, 1) for the jitter. It must be safe for concurrent use; nil means math/rand/v2.
	Random func() float64
	// Pause makes a request wait. It returns nil when the duration has passed, or the error of the context if the
	// context is done earlier. It must be safe for concurrent use; nil means a timer. Set it for simulated time.
	Pause func(context.Context, time.Duration) error
}

const defaultWaiting = 1000

// A Mode is how a limit is applied to one request.
type Mode uint8

const (
	// AsWritten applies the limit as it is.
	AsWritten Mode = iota
	// InShadow applies the limit as if [Limit].Shadow were set.
	InShadow
	// NotApplied skips the limit, as if it did not match.
	NotApplied
)

// New returns a set of the limits. A request is checked against all limits that match it, and takes from all or none.
// If a limit or an option is bad, the error says what is wrong.
func New[R any](limits []Limit[R], options Options[R]) (*Set[R], error) {
	checked, err := newLimits(limits)
	if err != nil {
		return nil, fmt.Errorf("limits: New: %w", err)
	}
	switch {
	case options.MaxWaiting < 0:
		return nil, fmt.Errorf("limits: New: MaxWaiting is %d: want 1 or more, or 0 for %d", options.MaxWaiting, defaultWaiting)
	case options.Jitter < 0 || options.Jitter > spec.MaxJitter:
		return nil, fmt.Errorf("limits: New: Jitter is %v: want 0 to %v", options.Jitter, spec.MaxJitter)
	}
	if options.MaxWaiting == 0 {
		options.MaxWaiting = defaultWaiting
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	if options.Pause == nil {
		options.Pause = pause.For
	}
	s := &Set[R]{limits: checked, options: options}
	if options.Modes != nil {
		for _, l := range checked {
			shadowed := *l
			shadowed.Shadow = true
			shadowed.needs |= isShadow
			s.shadowed = append(s.shadowed, &shadowed)
		}
	}
	s.waiters.maxPerKey, s.waiters.byKey = (options.MaxWaiting+waiterShare-1)/waiterShare, map[waiter]int{}
	return s, nil
}

// Failures returns how many times a [Source] has failed or a limit could not be applied.
func (s *Set[R]) Failures() uint64 { return s.failures.Load() }

// Waiting returns how many requests wait for tokens now, for all limits together.
func (s *Set[R]) Waiting() int64 {
	return min(s.waiting.Load(), int64(s.options.MaxWaiting)) // a request above the bound is about to leave
}

// Len returns how many limits the set has.
func (s *Set[R]) Len() int { return len(s.limits) }

// Limit returns the i-th limit, in the order of [New].
func (s *Set[R]) Limit(i int) *Limit[R] { return &s.limits[i].Limit }
