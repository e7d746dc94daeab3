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

// UnmarshalText accepts the name of an algorithm.
func (a *Algorithm) UnmarshalText(text []byte) error {
	i := slices.IndexFunc(algorithms, func(a *Algorithm) bool { return a.name == string(text) })
	if i < 0 {
		return fmt.Errorf("algorithm %q: want %s", text, Names())
	}
	*a = *algorithms[i]
	return nil
}

// String returns the text that UnmarshalText reads.
func (a *Algorithm) String() string { return a.name }
