package zone

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
)

// A former is a limiter that a zone had before, and that requests are held against until it has forgotten.
type former struct {
	limiter *engine.Limiter
	window  time.Duration // in which it forgets
	ends    atomic.Int64  // when it has, in nanoseconds since 1970; 0 while nothing in force has taken its place
}

// mostFormers is how many a zone has at most. Each has a table of its own, and every request is held against it: with
// the limiter of the zone they are as many as a decision looks at without allocating.
const mostFormers = 7

// begin notes when the former has forgotten, once.
func (f *former) begin(now time.Time) { f.ends.CompareAndSwap(0, now.Add(f.window).UnixNano()) }

// isOver reports whether it has.
func (f *former) isOver(now time.Time) bool {
	ends := f.ends.Load()
	return ends != 0 && now.UnixNano() >= ends
}

// follow has requests held against the limiters of the generation before, too, where that can be: where all of them
// count in this process, and what they count is over after a while. policy is what the generation before is under. A
// limiter for which there is no room among the formers is forgotten at once: follow reports that.
func (g *generation) follow(before *generation, policy engine.Policy) (forgot bool) {
	if g.limiter == nil || isOpen(g.made.Policy) {
		return false
	}
	g.formers = slices.Clone(before.formers)
	if before.limiter != nil && !isOpen(before.made.Policy) && before.made.Policy.Algorithm() != engine.NoAlgorithm {
		window := max(policy.Window(), before.made.Policy.Window())
		g.formers = append(g.formers, &former{limiter: before.limiter, window: window})
	}
	if more := len(g.formers) - mostFormers; more > 0 {
		g.formers = slices.Delete(g.formers, 0, more)
		return true
	}
	return false
}

// isOpen reports whether what a limiter of the policy counts has no end that is known: of requests in flight, and where
// the limit comes with the request.
func isOpen(p engine.Policy) bool {
	return p.Algorithm() == engine.AlgorithmConcurrency || p.Longest() != 0
}

// begin notes that the generation is in force, so that the formers forget.
func (g *generation) begin(now time.Time) {
	for _, f := range g.formers {
		f.begin(now)
	}
}

// prune drops the formers that have forgotten.
func (g *generation) prune(now time.Time) {
	g.formers = slices.DeleteFunc(g.formers, func(f *former) bool { return f.isOver(now) })
}
