package stores

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	nodes   = 4
	workers = 16     // goroutines per node
	herd    = 10_000 // new keys that are requested at the same time
)

// A Result is the result for one subject.
type Result struct {
	Subject   string
	Scripts   float64       // scripts per decision
	Processor time.Duration // processor time of the store per decision
	Rate      float64       // decisions per second
	P50, P99  time.Duration
	Errors    int // how many of those decisions returned an error
	Decisions int

	Admitted, Bound float64 // tokens of one key, of which all nodes together request far too many

	PauseLongest time.Duration // the longest decision during a pause of the store
	PauseBack    time.Duration // time after the pause until the store decided again
	PauseErrors  int
	PauseAsked   int

	HerdAnswered int // how many requests of the herd were answered
	HerdTook     time.Duration
}

// A Plan contains the duration of each part of the measurement.
type Plan struct {
	Cost, Excess, Pause time.Duration
	Rounds              int
}

// Run measures all subjects one after the other, in each round. It calls the function progress before each subject.
func Run(ctx context.Context, binary string, plan Plan, subjects []Subject, progress func(string)) ([]Result, error) {
	s, err := StartServer(ctx, binary)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	rounds := make([][]Result, len(subjects))
	for round := range plan.Rounds {
		for i, subject := range subjects {
			progress(fmt.Sprintf("round %d of %d: %s", round+1, plan.Rounds, subject.Name))
			r, err := s.measure(ctx, plan, subject)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", subject.Name, err)
			}
			rounds[i] = append(rounds[i], r)
		}
	}
	results := make([]Result, len(subjects))
	for i, of := range rounds {
		results[i] = middle(of)
	}
	return results, nil
}

// middle returns the round with the median processor time. In this result, the durations of the pause, the figures of
// the herd, and the admitted tokens with their bound are the worst of all rounds.
func middle(of []Result) Result {
	slices.SortFunc(of, func(a, b Result) int { return int(a.Processor - b.Processor) })
	r := of[len(of)/2]
	for _, other := range of {
		r.PauseLongest, r.PauseBack = max(r.PauseLongest, other.PauseLongest), max(r.PauseBack, other.PauseBack)
		r.HerdAnswered, r.HerdTook = min(r.HerdAnswered, other.HerdAnswered), max(r.HerdTook, other.HerdTook)
		if other.Admitted/other.Bound > r.Admitted/r.Bound {
			r.Admitted, r.Bound = other.Admitted, other.Bound
		}
	}
	return r
}

func (s *Server) measure(ctx context.Context, plan Plan, subject Subject) (r Result, err error) {
	r.Subject = subject.Name
	for _, part := range []func(context.Context, Plan, Subject, *Result) error{s.cost, s.excess, s.pause, s.herd} {
		if err := s.client.FlushAll(ctx).Err(); err != nil {
			return r, err
		}
		if err := part(ctx, plan, subject, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (s *Server) open(ctx context.Context, subject Subject, n int, rate Rate) (takes []Take, end func(), err error) {
	var ends []func()
	end = func() {
		for _, one := range ends {
			one()
		}
	}
	for range n {
		take, one, err := subject.New(ctx, s.Address, rate)
		if err != nil {
			end()
			return nil, nil, err
		}
		takes, ends = append(takes, take), append(ends, one)
	}
	return takes, end, nil
}

// The method cost measures admitted decisions: goroutines of one node make requests for keys in turn.
func (s *Server) cost(ctx context.Context, plan Plan, subject Subject, r *Result) error {
	takes, end, err := s.open(ctx, subject, 1, Rate{PerSecond: 1_000_000, Burst: 1_000_000})
	if err != nil {
		return err
	}
	defer end()
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = fmt.Sprintf("client-%d", i)
		if _, err := takes[0](ctx, keys[i]); err != nil {
			return err
		}
	}
	before, err := s.use(ctx)
	if err != nil {
		return err
	}
	times := make([][]time.Duration, workers)
	var failed atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; ; i++ {
				at := time.Now()
				if at.Sub(began) >= plan.Cost {
					return
				}
				if _, err := takes[0](ctx, keys[i%len(keys)]); err != nil {
					failed.Add(1)
				}
				times[w] = append(times[w], time.Since(at))
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	after, err := s.use(ctx)
	if err != nil {
		return err
	}
	sorted := slices.Sorted(slices.Values(slices.Concat(times...)))
	n := len(sorted)
	r.Decisions, r.Errors, r.Rate = n, int(failed.Load()), float64(n)/took.Seconds()
	r.Scripts = float64(after.scripts-before.scripts) / float64(n)
	r.Processor = (after.processor - before.processor) / time.Duration(n)
	r.P50, r.P99 = sorted[n/2], sorted[n*99/100]
	return nil
}

// excess makes nodes ask for far too many tokens of one key, and counts all admitted tokens.
func (s *Server) excess(ctx context.Context, plan Plan, subject Subject, r *Result) error {
	rate := Rate{PerSecond: 1000, Burst: 200}
	takes, end, err := s.open(ctx, subject, nodes, rate)
	if err != nil {
		return err
	}
	defer end()
	var admitted atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for _, take := range takes {
		for range 2 {
			all.Go(func() {
				for time.Since(began) < plan.Excess {
					if allowed, err := take(ctx, "one"); err == nil && allowed {
						admitted.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	took := time.Since(began)
	r.Admitted = float64(admitted.Load())
	r.Bound = float64(rate.Burst) + float64(rate.PerSecond)*took.Seconds()
	if subject.IsWindow { // every window has the complete limit
		r.Bound = float64(rate.PerSecond) * float64(int(took.Seconds())+1)
	}
	return nil
}

// pause stops the store for a while, during which goroutines make requests.
func (s *Server) pause(ctx context.Context, plan Plan, subject Subject, r *Result) error {
	takes, end, err := s.open(ctx, subject, 1, Rate{PerSecond: 1000, Burst: 200})
	if err != nil {
		return err
	}
	defer end()
	const asking = 8
	var mu sync.Mutex
	var back time.Time // when the store first decided after the pause
	var resumed atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	if err := s.stop(); err != nil {
		return err
	}
	for w := range asking {
		all.Go(func() {
			for i := 0; !over.Load(); i++ {
				at := time.Now()
				_, err := takes[0](ctx, fmt.Sprintf("pause-%d-%d", w, i))
				now := time.Now()
				mu.Lock()
				r.PauseLongest = max(r.PauseLongest, now.Sub(at))
				r.PauseAsked++
				if err != nil {
					r.PauseErrors++
				} else if since := resumed.Load(); since != 0 && now.UnixNano() > since && back.IsZero() {
					back = now
				}
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	time.Sleep(plan.Pause)
	resumed.Store(time.Now().UnixNano())
	if err := s.goOn(); err != nil {
		return err
	}
	time.Sleep(plan.Pause / 2)
	over.Store(true)
	all.Wait()
	if !back.IsZero() {
		r.PauseBack = time.Duration(back.UnixNano() - resumed.Load())
	}
	return nil
}

func (s *Server) herd(ctx context.Context, _ Plan, subject Subject, r *Result) error {
	takes, end, err := s.open(ctx, subject, 1, Rate{PerSecond: 1000, Burst: 200})
	if err != nil {
		return err
	}
	defer end()
	if _, err := takes[0](ctx, "warm"); err != nil {
		return err
	}
	var answered atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for i := range herd {
		all.Go(func() {
			if _, err := takes[0](ctx, fmt.Sprintf("new-%d", i)); err == nil {
				answered.Add(1)
			}
		})
	}
	all.Wait()
	r.HerdAnswered, r.HerdTook = int(answered.Load()), time.Since(began)
	return nil
}
