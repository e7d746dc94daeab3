package engine

import "fmt"

// An Algorithm is the method by which a [Policy] counts tokens.
type Algorithm uint8

// These are the algorithms, named after the functions that return their policies. The zero [Policy] has NoAlgorithm.
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

// String returns the algorithm's name for use in a sentence, such as "token bucket", and "" for NoAlgorithm.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}
