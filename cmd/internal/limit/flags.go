package limit

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// Flags are the command line's. NoAlgorithm and a nil pointer are where nothing was said.
type Flags struct {
	Algorithm Rated       `placeholder:"NAME" help:"How to count: ${algorithms} (default: token-bucket)."`
	Limit     engine.Rate `default:"1/s" placeholder:"N/PERIOD" help:"What each key may have, such as 100/s, 10/m, 5000/h, 3/d or 10/1500ms: so many tokens come back in so much time, or so many requests in a window so long (default: ${default})."`
	Burst     *uint64     `placeholder:"N" help:"Tokens that a full bucket holds: so many requests may come at once, 1 to 4294967296 (default: as many as --limit gives in its period, 100 of 100/s). A window has none."`
	Aligned   bool        `help:"Begin fixed windows at the multiples of their length (UTC) instead of with a key's first request."`
	MaxKeys   int         `default:"1000000" placeholder:"N" help:"Keys to have room for, at 27 bytes each (sliding-log: 27, and 13 for each request of the limit); beyond that the key nearest to idle is forgotten (default: ${default})."`
}

// Policy returns the policy that the flags ask for.
func (f *Flags) Policy() (engine.Policy, error) {
	n := Numbers{Algorithm: f.Algorithm.Algorithm, Rate: f.Limit, Burst: f.Burst, Aligned: f.Aligned}
	if n.Algorithm == engine.NoAlgorithm {
		n.Algorithm = engine.AlgorithmTokenBucket
	}
	form, name := FormOf(n.Algorithm), Name(n.Algorithm)
	if f.Aligned && !form.Aligned {
		return engine.Policy{}, Misuse("--aligned is for fixed windows, and --algorithm %s has none: leave it out, "+
			"or say --algorithm %s",
			name, Name(engine.AlgorithmFixedWindow))
	}
	if form.Whole {
		if err := f.whole(name); err != nil {
			return engine.Policy{}, err
		}
	}
	if f.Burst != nil && !form.Burst {
		return engine.Policy{}, Misuse("--burst %d: a %s has no burst, because all of its limit, %d in %v, may come "+
			"at once: leave it out, or use --algorithm %s",
			*f.Burst, name, uint64(f.Limit.Tokens()), f.Limit.Period(), Name(engine.AlgorithmTokenBucket))
	}
	return n.Policy(), nil
}

// whole checks the rate for something that counts whole requests.
func (f *Flags) whole(what string) error {
	if err := Whole(f.Limit); err != nil {
		return Misuse("--limit %v: a %s wants a whole number of requests: %w", f.Limit, what, err)
	}
	return nil
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
	case f.Algorithm != Rated{}:
		return nil, Misuse("--algorithm %s: --compare runs %s: leave one of the two out", Name(f.Algorithm.Algorithm), Compared())
	case f.Burst != nil:
		return nil, Misuse("--burst %d: --compare gives every algorithm the same limit, so a full bucket holds what "+
			"--limit says: leave it out", *f.Burst)
	}
	if err := f.whole("comparison"); err != nil {
		return nil, err
	}
	c := &Comparison{Limit: uint64(f.Limit.Tokens()), Window: f.Limit.Period(), MaxKeys: f.MaxKeys}
	for _, a := range compared {
		n := Numbers{Algorithm: a, Rate: f.Limit, Burst: &c.Limit, Aligned: f.Aligned && FormOf(a).Aligned}
		c.Policies = append(c.Policies, n.Policy())
	}
	return c, nil
}

// Limiter returns the engine for a policy, with room for as many keys as the flags say or fewer. The caller closes it.
func (f *Flags) Limiter(policy engine.Policy, room int, options ...engine.Option) (*engine.Limiter, error) {
	limiter, err := engine.New(policy, append(options, engine.MaxKeys(min(room, f.MaxKeys)))...)
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
