package limit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/engine"
)

// A Form says how people write the numbers of an algorithm.
type Form struct {
	Burst   bool // a full bucket is a number of its own, beside the rate
	Whole   bool // the rate is a whole number of tokens in a period: see [Whole]
	Aligned bool // it can begin with the clock
}

// FormOf returns the form of an algorithm; the zero Form for [engine.NoAlgorithm].
func FormOf(a engine.Algorithm) Form {
	switch a {
	case engine.AlgorithmTokenBucket:
		return Form{Burst: true}
	case engine.AlgorithmBatchRefill:
		return Form{Burst: true, Whole: true}
	case engine.AlgorithmFixedWindow:
		return Form{Whole: true, Aligned: true}
	case engine.AlgorithmSlidingWindow, engine.AlgorithmSlidingLog:
		return Form{Whole: true}
	case engine.AlgorithmConcurrency, engine.NoAlgorithm:
	}
	return Form{}
}

// compared are the algorithms that a comparison runs.
var compared = []engine.Algorithm{
	engine.AlgorithmTokenBucket, engine.AlgorithmFixedWindow, engine.AlgorithmSlidingWindow, engine.AlgorithmSlidingLog,
}

// Name returns the name of an algorithm as flags and files have it: "token-bucket".
func Name(a engine.Algorithm) string {
	text, err := a.MarshalText()
	if err != nil {
		return a.String()
	}
	return string(text)
}

// A Rated is an algorithm that has a rate, as a flag: any but that of limits in flight.
type Rated struct{ engine.Algorithm }

// UnmarshalText reads one of [Names]. Any other text is an error that lists them.
func (r *Rated) UnmarshalText(text []byte) error {
	if !slices.Contains(Names(), string(text)) {
		return fmt.Errorf("algorithm %q: want %s", text, List())
	}
	return r.Algorithm.UnmarshalText(text)
}

// RatedAlgorithms returns all algorithms that have a rate.
func RatedAlgorithms() []engine.Algorithm {
	return slices.DeleteFunc(engine.Algorithms(), func(a engine.Algorithm) bool { return a == engine.AlgorithmConcurrency })
}

// Names returns the names of all algorithms that have a rate.
func Names() []string { return names(RatedAlgorithms()) }

// List returns the names of all algorithms that have a rate, as a list in a sentence.
func List() string { return sentence(Names(), "or") }

// Compared returns the names of those that a comparison runs, as a list in a sentence.
func Compared() string { return sentence(names(compared), "and") }

func names(all []engine.Algorithm) []string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = Name(a)
	}
	return names
}

func sentence(words []string, last string) string {
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}
