package limit

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// Flags are the command line's. A pointer is nil where nothing was said.
type Flags struct {
	Algorithm *Algorithm `placeholder:"NAME" help:"How to count: ${algorithms} (default: token-bucket)."`
	Limit     Rate       `default:"1/s" placeholder:"N/PERIOD" help:"What each key may have, such as 100/s, 10/m, 5000/h, 3/d or 10/1500ms: so many tokens come back in so much time, or so many requests in a window so long (default: ${default})."`
	Burst     *uint64    `placeholder:"N" help:"Tokens that a full bucket holds: so many requests may come at once, 1 to 4294967296 (default: 5; with batch-refill what comes back at once). A window has none."`
	Aligned   bool       `help:"Begin fixed windows at the multiples of their length (UTC) instead of with a key's first request."`
	MaxKeys   int        `default:"1000000" placeholder:"N" help:"Keys to have room for, at 27 bytes each (sliding-log: 27, and 13 for each request of the limit); beyond that the key nearest to idle is forgotten (default: ${default})."`
}

// defaultBurst is the burst of a token bucket where none is given.
const defaultBurst = 5

// Policy returns the policy that the flags ask for.
func (f *Flags) Policy() (engine.Policy, error) {
	a := f.algorithm()
	if f.Aligned && !a.HasAligned() {
		return engine.Policy{}, Misuse("--aligned is for fixed windows, and --algorithm %s has none: leave it out, or say --algorithm %s", a, fixedWindow)
	}
	if a.WantsWhole() {
		limit, period, err := f.Limit.whole(a.name)
		if err != nil {
			return engine.Policy{}, err
		}
		if f.Burst != nil && !a.HasBurst() {
			return engine.Policy{}, Misuse("--burst %d: a %s has no burst, because all of its limit, %d in %v, may come at once: leave it out, or use --algorithm token-bucket",
				*f.Burst, a, limit, period)
		}
	}
	return a.Policy(f.Limit, f.Burst, f.Aligned), nil
}

// AlgorithmName returns the name of the algorithm, the default's if none was given.
func (f *Flags) AlgorithmName() string { return f.algorithm().name }

func (f *Flags) algorithm() *Algorithm {
	if f.Algorithm == nil {
		return algorithms[0]
	}
	return f.Algorithm
}

// A Comparison is the same limit by every algorithm.
type Comparison struct {
	Policies []engine.Policy
	Limit    uint64
	Window   time.Duration
	MaxKeys  int
}

// Comparison returns what the flags ask to compare: the windows at the limit, and the token
// bucket that gives as much back in a window's time and holds as much.
func (f *Flags) Comparison() (*Comparison, error) {
	switch {
	case f.Algorithm != nil:
		return nil, Misuse("--algorithm %s: --compare runs %s: leave one of the two out", f.Algorithm, Compared())
	case f.Burst != nil:
		return nil, Misuse("--burst %d: --compare gives every algorithm the same limit, so a full bucket holds what --limit says: leave it out", *f.Burst)
	}
	limit, length, err := f.Limit.whole("comparison")
	if err != nil {
		return nil, err
	}
	n := numbers{rate: f.Limit.Rate, limit: limit, window: length, burst: limit}
	c := &Comparison{Limit: limit, Window: length, MaxKeys: f.MaxKeys}
	for _, a := range algorithms {
		if a.compared {
			c.Policies = append(c.Policies, a.with(n, f.Aligned && a.HasAligned()))
		}
	}
	return c, nil
}

// Limiter returns the engine for a policy. The caller closes it.
func (f *Flags) Limiter(policy engine.Policy, options ...engine.Option) (*engine.Limiter, error) {
	limiter, err := engine.New(policy, append(options, engine.MaxKeys(f.MaxKeys))...)
	if err != nil {
		return nil, misuse{err}
	}
	return limiter, nil
}

// Misuse returns an error about a mistake on the command line that only the work itself
// could find. It ends the program with the status that kong gives to all others.
func Misuse(format string, args ...any) error { return misuse{fmt.Errorf(format, args...)} }

type misuse struct{ error }

// ExitCode implements kong.ExitCoder.
func (misuse) ExitCode() int { return 80 }

func (e misuse) Unwrap() error { return e.error }
