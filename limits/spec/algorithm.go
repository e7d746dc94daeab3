package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/engine"
)

// form says which numbers an algorithm has and which conditions they must meet.
type form struct {
	burst   bool // the size of a full bucket is set separately from the rate
	whole   bool // the rate is a whole number of tokens in its period
	aligned bool // windows can begin with the clock
	period  bool // the tiers of a limit share the period of the rate
	rate    bool // the tiers of a limit share the rate
	logs    bool // the time of each request is stored
}

func formOf(a engine.Algorithm) form {
	switch a {
	case engine.AlgorithmTokenBucket:
		return form{burst: true}
	case engine.AlgorithmBatchRefill:
		return form{burst: true, whole: true, rate: true}
	case engine.AlgorithmFixedWindow:
		return form{whole: true, aligned: true, period: true}
	case engine.AlgorithmSlidingWindow:
		return form{whole: true, period: true}
	case engine.AlgorithmSlidingLog:
		return form{whole: true, period: true, logs: true}
	case engine.AlgorithmConcurrency, engine.NoAlgorithm:
	}
	return form{}
}

// HasBurst reports whether a limit of the algorithm has a burst.
func HasBurst(a engine.Algorithm) bool { return formOf(a).burst }

// Logs reports whether the algorithm keeps the time of each request. The memory of a key then grows with the limit, and
// the table cannot be in a file.
func Logs(a engine.Algorithm) bool { return formOf(a).logs }

// CanAlign reports whether the windows of the algorithm can begin at multiples of their length.
func CanAlign(a engine.Algorithm) bool { return formOf(a).aligned }

// Algorithms returns the algorithms that have a rate: all except [engine.AlgorithmConcurrency].
func Algorithms() []engine.Algorithm {
	return slices.DeleteFunc(engine.Algorithms(), func(a engine.Algorithm) bool { return a == engine.AlgorithmConcurrency })
}

// Name returns the name of an algorithm in configurations, such as "token-bucket"; "" for [engine.NoAlgorithm].
func Name(a engine.Algorithm) string {
	return strings.ReplaceAll(a.String(), " ", "-")
}

// Names returns the names of algorithms.
func Names(all []engine.Algorithm) []string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = Name(a)
	}
	return names
}

// List returns the names of [Algorithms] as a list in a sentence: "token-bucket, ... or sliding-log".
func List() string {
	names := Names(Algorithms())
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// ParseAlgorithm returns the element of [Algorithms] whose name is the text; "" means the token bucket. For a text that
// is no such name, the error lists the names.
func ParseAlgorithm(text string) (engine.Algorithm, error) {
	if text == "" {
		return engine.AlgorithmTokenBucket, nil
	}
	for _, a := range Algorithms() {
		if Name(a) == text {
			return a, nil
		}
	}
	return engine.NoAlgorithm, fmt.Errorf("algorithm %q: want %s", text, List())
}
