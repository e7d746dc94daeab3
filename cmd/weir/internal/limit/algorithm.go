package limit

import (
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
	case engine.NoAlgorithm:
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

// Names returns the names of all algorithms.
func Names() []string { return names(engine.Algorithms()) }

// List returns the names of all algorithms, as a list in a sentence.
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
