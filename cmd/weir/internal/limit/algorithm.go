package limit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
)

// numbers is what the flags come to.
type numbers struct {
	rate   engine.Rate
	limit  uint64        // the rate as whole tokens, where those are wanted
	window time.Duration // in so much time
	burst  uint64
}

// An Algorithm is one that can be asked for by name.
type Algorithm struct {
	name     string
	kind     kind
	compared bool // with the others
	policy   func(numbers) engine.Policy
}

// kind says which flags an algorithm has.
type kind uint8

const (
	rated   kind = iota // any rate, and a burst
	batched             // whole tokens in a period, and a burst
	window              // whole tokens in a period
)

// algorithms are all there are, in the order in which people see them. The first is
// the default.
var algorithms = []*Algorithm{
	{"token-bucket", rated, true, func(n numbers) engine.Policy { return engine.TokenBucket(n.rate, n.burst) }},
	{"batch-refill", batched, false, func(n numbers) engine.Policy { return engine.BatchRefill(n.limit, n.window, n.burst) }},
	{fixedWindow, window, true, func(n numbers) engine.Policy { return engine.FixedWindow(n.limit, n.window) }},
	{"sliding-window", window, true, func(n numbers) engine.Policy { return engine.SlidingWindow(n.limit, n.window) }},
	{"sliding-log", window, true, func(n numbers) engine.Policy { return engine.SlidingLog(n.limit, n.window) }},
}

// fixedWindow is the only one that can be aligned.
const fixedWindow = "fixed-window"

// Names returns the names of all algorithms, as a list in a sentence.
func Names() string { return list(algorithms, "or") }

// Compared returns the names of those that a comparison runs.
func Compared() string {
	return list(slices.DeleteFunc(slices.Clone(algorithms), func(a *Algorithm) bool { return !a.compared }), "and")
}

func list(all []*Algorithm, word string) string {
	var names []string
	for _, a := range all {
		names = append(names, a.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}

// Find returns the algorithm of that name; the default for "", and nil if there is none.
func Find(name string) *Algorithm {
	if name == "" {
		return algorithms[0]
	}
	i := slices.IndexFunc(algorithms, func(a *Algorithm) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return algorithms[i]
}

// All returns the names of all algorithms.
func All() []string {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = a.name
	}
	return names
}

// HasBurst reports whether a full bucket is a number of its own, beside the rate.
func (a *Algorithm) HasBurst() bool { return a.kind != window }

// RefillsAtOnce reports whether tokens come back all at once.
func (a *Algorithm) RefillsAtOnce() bool { return a.kind == batched }

// HasAligned reports whether it can begin with the clock.
func (a *Algorithm) HasAligned() bool { return a.name == fixedWindow }

// WantsWhole reports whether its rates are whole tokens in a period. [Rate.Whole] gives them.
func (a *Algorithm) WantsWhole() bool { return a.kind != rated }

// Policy returns the policy of those numbers. A nil burst is the default. The rate is whole if
// the algorithm wants that, burst is nil if it has none, and aligned false if it cannot be.
func (a *Algorithm) Policy(rate Rate, burst *uint64, aligned bool) engine.Policy {
	return a.with(a.numbers(rate, burst), aligned)
}

// Limit returns the most tokens that a key can have under the policy of those numbers.
func (a *Algorithm) Limit(rate Rate, burst *uint64) uint64 {
	return a.numbers(rate, burst).burst
}

func (a *Algorithm) numbers(rate Rate, burst *uint64) numbers {
	n := numbers{rate: rate.Rate, burst: defaultBurst}
	if a.WantsWhole() {
		n.limit, n.window, _ = rate.Whole()
		n.burst = n.limit // of a window too: all of it may come at once
	}
	if burst != nil {
		n.burst = *burst
	}
	return n
}

func (a *Algorithm) with(n numbers, aligned bool) engine.Policy {
	p := a.policy(n)
	if aligned {
		return p.Aligned()
	}
	return p
}

// UnmarshalText accepts the name of an algorithm.
func (a *Algorithm) UnmarshalText(text []byte) error {
	found := Find(string(text))
	if found == nil || len(text) == 0 {
		return fmt.Errorf("algorithm %q: want %s", text, Names())
	}
	*a = *found
	return nil
}

// String returns the text that UnmarshalText reads.
func (a *Algorithm) String() string { return a.name }
