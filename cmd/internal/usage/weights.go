package usage

import "math/bits"

// Weights has the weights of tokens, in thousandths.
type Weights struct{ Input, Cached, CacheWrite, Output uint64 }

// These weights make each token count fully or not at all.
var (
	Total      = Weights{}
	InputOnly  = Weights{Input: 1000, Cached: 1000, CacheWrite: 1000}
	OutputOnly = Weights{Output: 1000}
)

// MaxCost returns the largest cost that an answer can report. Every field of its usage is then [MaxField].
func (w Weights) MaxCost() uint64 {
	// The input has four fields: one for itself, two for caches, and one for the input of tools. The output has two:
	// one for itself and one for thoughts.
	const inputs, outputs = 4 * MaxField, 2 * MaxField
	if w == Total {
		return inputs + outputs
	}
	w.Input = max(w.Input, w.Cached, w.CacheWrite)
	return w.sum(inputs, 0, 0, outputs)
}

// Cost returns the weighted cost of a usage. It rounds up. If the Weights are zero, the cost is the total of the usage.
func (w Weights) Cost(u Usage) uint64 {
	if w == Total {
		return u.Total
	}
	return w.sum(u.Input-u.Cached-u.CacheWrite, u.Cached, u.CacheWrite, u.Output)
}

// Estimate returns the weighted cost of a request whose input and output are estimated.
func (w Weights) Estimate(input, output uint64) uint64 {
	if w == Total {
		return input + output
	}
	return w.sum(input, 0, 0, output)
}

// sum returns the sum of the weighted counts. If the sum exceeds 64 bits, it returns the largest number.
func (w Weights) sum(input, cached, cacheWrite, output uint64) uint64 {
	var total, overflow uint64
	for _, part := range [][2]uint64{{input, w.Input}, {cached, w.Cached}, {cacheWrite, w.CacheWrite}, {output, w.Output}} {
		high, low := bits.Mul64(part[0], part[1])
		var carry uint64
		total, carry = bits.Add64(total, low, 0)
		overflow += high + carry
	}
	if overflow > 0 {
		return 1<<64 - 1
	}
	n := total / 1000
	if total%1000 > 0 {
		n++
	}
	return n
}
