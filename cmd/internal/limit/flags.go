package limit

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// Flags has flags of the command line. For a flag that is not set, Algorithm is NoAlgorithm and Burst is nil.
type Flags struct {
	Algorithm Rated       `placeholder:"NAME" help:"How to count: ${algorithms} (default: token-bucket)."`
	Limit     engine.Rate `default:"1/s" placeholder:"N/PERIOD" help:"The limit of each key, such as 100/s, 10/m, 5000/h, 3/d or 10/1500ms: N tokens come back in each period, or a window of that length admits N requests (default: ${default})."`
	Burst     *uint64     `placeholder:"N" help:"Tokens of a full bucket, which is how many requests may come at once: 1 to 4294967296 (default: the tokens of --limit in its period, 100 for 100/s). A window has none."`
	Aligned   bool        `help:"Start fixed windows at multiples of their length (UTC) instead of with a key's first request."`
	MaxKeys   int         `default:"1000000" placeholder:"N" help:"Keys to have room for, at 27 bytes each (sliding-log: 27, and 13 for each request of the limit). Without room, the key nearest to idle is evicted (default: ${default})."`
}

// Policy returns the policy that the flags describe.
func (f *Flags) Policy() (engine.Policy, error) {
	l := f.spec(f.Algorithm.Algorithm)
	l.Aligned, l.Burst = f.Aligned, f.Burst
	return policy(l)
}

func (f *Flags) spec(a engine.Algorithm) spec.Limit {
	return spec.Limit{Algorithm: a, Numbers: spec.Numbers{Rate: spec.Of(f.Limit)}}
}

// policy returns the policy of a limit. Its errors name the flags.
func policy(l spec.Limit) (engine.Policy, error) {
	p, err := l.Policy()
	if errs := spec.ErrorsOf(err); errs != nil {
		e := errs[0]
		if rest, ok := strings.CutPrefix(e.Message, e.Key); ok {
			e.Message = map[string]string{"rate": "--limit", "burst": "--burst", "aligned": "--aligned"}[e.Key] + rest
		}
		return p, misuse{e}
	}
	return p, nil
}

// A Rated is a flag for an algorithm that has a rate.
type Rated struct{ engine.Algorithm }

// UnmarshalText parses a name of [spec.Algorithms]. The error for another text lists the names.
func (r *Rated) UnmarshalText(text []byte) (err error) {
	r.Algorithm, err = spec.ParseAlgorithm(string(text))
	return err
}

var comparedAlgorithms = []engine.Algorithm{
	engine.AlgorithmTokenBucket, engine.AlgorithmFixedWindow, engine.AlgorithmSlidingWindow, engine.AlgorithmSlidingLog,
}

// Compared returns the names of the algorithms in a comparison, as text in a sentence.
func Compared() string {
	names := spec.Names(comparedAlgorithms)
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// A Comparison has the same limit with each compared algorithm.
type Comparison struct {
	Policies []engine.Policy
	Limit    uint64
	Window   time.Duration
	MaxKeys  int
}

// Comparison returns the policies to compare. Windows have the given limit. The token bucket has a burst of the limit,
// and gets that many tokens per window.
func (f *Flags) Comparison() (*Comparison, error) {
	switch {
	case f.Algorithm != Rated{}:
		return nil, Misuse("--algorithm %s: --compare runs %s: leave one of the two out", spec.Name(f.Algorithm.Algorithm), Compared())
	case f.Burst != nil:
		return nil, Misuse("--burst %d: --compare gives every algorithm the same limit, so the burst is that of --limit: leave it out", *f.Burst)
	}
	if _, err := policy(f.spec(engine.AlgorithmFixedWindow)); err != nil {
		return nil, err
	}
	c := &Comparison{Limit: uint64(f.Limit.Tokens), Window: f.Limit.Period, MaxKeys: f.MaxKeys}
	for _, a := range comparedAlgorithms {
		l := f.spec(a)
		l.Aligned = f.Aligned && spec.CanAlign(a)
		if spec.HasBurst(a) {
			l.Burst = &c.Limit
		}
		p, err := policy(l)
		if err != nil {
			return nil, err
		}
		c.Policies = append(c.Policies, p)
	}
	return c, nil
}

// Limiter returns a limiter for at most maxKeys keys, or fewer if the flags say so. The caller must close it.
func (f *Flags) Limiter(policy engine.Policy, maxKeys int, options ...engine.Option) (*engine.Limiter, error) {
	limiter, err := engine.New(policy, append(options, engine.MaxKeys(min(maxKeys, f.MaxKeys)))...)
	if err != nil {
		return nil, misuse{err}
	}
	return limiter, nil
}

// Misuse returns an error about the command line that the parser could not find. The program exits with the status that
// kong uses for mistakes.
func Misuse(format string, args ...any) error { return misuse{fmt.Errorf(format, args...)} }

type misuse struct{ error }

func (misuse) ExitCode() int { return 80 }

func (e misuse) Unwrap() error { return e.error }
