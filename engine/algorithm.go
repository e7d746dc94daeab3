package engine

import (
	"fmt"
	"strings"
)

// An Algorithm is a way to count. [Policy.Algorithm] tells which one a policy has.
type Algorithm uint8

// The algorithms, each named after the function that makes a [Policy] of it. NoAlgorithm is that of the zero
// Policy.
const (
	NoAlgorithm Algorithm = iota
	AlgorithmTokenBucket
	AlgorithmBatchRefill
	AlgorithmFixedWindow
	AlgorithmSlidingWindow
	AlgorithmSlidingLog
	AlgorithmConcurrency
)

var algorithmNames = [...]string{
	NoAlgorithm: "", AlgorithmTokenBucket: "token bucket", AlgorithmBatchRefill: "batch refill",
	AlgorithmFixedWindow: "fixed window", AlgorithmSlidingWindow: "sliding window", AlgorithmSlidingLog: "sliding log",
	AlgorithmConcurrency: "concurrency",
}

// Algorithms returns all algorithms, the token bucket first.
func Algorithms() []Algorithm {
	return []Algorithm{
		AlgorithmTokenBucket, AlgorithmBatchRefill, AlgorithmFixedWindow, AlgorithmSlidingWindow, AlgorithmSlidingLog,
		AlgorithmConcurrency,
	}
}

// String returns the name as it is written in a sentence: "token bucket", "batch refill", "fixed window",
// "sliding window", "sliding log" or "concurrency"; "" for NoAlgorithm.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}

// MarshalText writes the name as flags and files have it: "token-bucket".
func (a Algorithm) MarshalText() ([]byte, error) {
	if a == NoAlgorithm || int(a) >= len(algorithmNames) {
		return nil, fmt.Errorf("engine: Algorithm(%d) has no name", uint8(a))
	}
	return []byte(a.hyphenated()), nil
}

// UnmarshalText reads what MarshalText writes. Any other text is an error that lists the names.
func (a *Algorithm) UnmarshalText(text []byte) error {
	var names []string
	for _, known := range Algorithms() {
		if known.hyphenated() == string(text) {
			*a = known
			return nil
		}
		names = append(names, known.hyphenated())
	}
	last := len(names) - 1
	return fmt.Errorf("engine: algorithm %q: want %s or %s", text, strings.Join(names[:last], ", "), names[last])
}

func (a Algorithm) hyphenated() string { return strings.ReplaceAll(a.String(), " ", "-") }
