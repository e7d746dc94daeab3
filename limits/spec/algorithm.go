package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/engine"
)

// traits says which numbers an algorithm has and which conditions they must meet.
type traits struct {
	hasBurst    bool // the size of a full bucket is set separately from the rate
	wholeRate   bool // the rate is a whole number of tokens in its period
	canAlign    bool // windows can begin with the clock
	samePeriod  bool // the tiers of a limit share the period of the rate
	sameRate    bool // the tiers of a limit share the rate
	storesTimes bool // the time of each request is stored
}

func traitsOf(a engine.Algorithm) traits {
	switch a {
	case engine.AlgorithmTokenBucket:
		return traits{hasBurst: true}
	case engine.AlgorithmBatchRefill:
		return traits{hasBurst: true, wholeRate: true, sameRate: true}
	case engine.AlgorithmFixedWindow:
		return traits{wholeRate: true, canAlign: true, samePeriod: true}
	case engine.AlgorithmSlidingWindow:
		return traits{wholeRate: true, samePeriod: true}
	case engine.AlgorithmSlidingLog:
		return traits{wholeRate: true, samePeriod: true, storesTimes: true}
	case engine.AlgorithmConcurrency, engine.NoAlgorithm:
	}
	return traits{}
}

// HasBurst reports whether a limit of the algorithm has a burst.
func HasBurst(a engine.Algorithm) bool { return traitsOf(a).hasBurst }

// Logs reports whether the algorithm keeps the time of each request. The memory of a key then grows with the limit, and
// the table cannot be in a file.
func Logs(a engine.Algorithm) bool { return traitsOf(a).storesTimes }

// CanAlign reports whether the windows of the algorithm can begin at multiples of their length.
func CanAlign(a engine.Algorithm) bool { return traitsOf(a).canAlign }

// Algorithms returns the algorithms that have a rate: all except [engine.AlgorithmConcurrency].
func Algorithms() []engine.Algorithm {
	return slices.DeleteFunc(engine.Algorithms(), func(a engine.Algorithm) bool { return a == engine.AlgorithmConcurrency })
}

// Name returns the name of an algorithm in configurations, such as "token-bucket"; "" for [engine.NoAlgorithm].
func Name(a engine.Algorithm) string {
	return strings.ReplaceAll(a.String(), " ", "-")
}

// Names returns the names of algorithms.
func Names(algorithms []engine.Algorithm) []string {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
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
