package suggest

import (
	"math"
	"time"

	"github.com/weir-go/weir/cmd/internal/trace"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

const (
	// paces is the number of rates for which the peaks of a key are computed.
	paces = 24
	// slowestRate is the first of these rates, in tokens per second. It is half a token per day. Each further rate is
	// twice the previous rate.
	slowestRate = 0.5 / 86400
	// smallTotal is a total cost. If the requests of a key cost no more than this, its peaks are not worth the memory.
	smallTotal = 16
)

func pace(i int) float64 { return math.Ldexp(slowestRate, i) }

// peaks has a peak for each key and rate. Imagine a bucket without a limit, which each request fills by its cost, and
// which is emptied at this rate. The peak is its highest level. So it is the smallest burst with which a token bucket
// of that rate never refuses the key. Larger limits do not refuse the key either, so the key is left out when they are
// tried.
type peaks struct {
	totals []uint64
	row    []int32 // index in levels for each key; -1 for a key whose total cost is at most smallTotal
	levels [][paces]float64
}

func newPeaks(r *requests) (*peaks, error) {
	p := &peaks{totals: r.totals, row: make([]int32, len(r.totals))}
	for key, total := range r.totals {
		p.row[key] = -1
		if total > smallTotal {
			p.row[key] = int32(len(p.levels))
			p.levels = append(p.levels, [paces]float64{})
		}
	}
	type bucket struct {
		at     int64
		levels [paces]float64
	}
	buckets := make([]bucket, len(p.levels))
	err := r.forEach(func(q *trace.Request) bool {
		row := p.row[q.Key]
		if row < 0 {
			return true
		}
		b, peak, cost := &buckets[row], &p.levels[row], float64(q.Cost)
		// For a key's first request, this time is very long. This does not matter, because the bucket is empty.
		drained := time.Duration(q.UnixNano-b.at).Seconds() * slowestRate
		b.at = q.UnixNano
		for i := range b.levels {
			level := max(b.levels[i]-drained, 0) + cost
			b.levels[i], peak[i] = level, max(peak[i], level)
			drained *= 2
		}
		return true
	})
	return p, err
}

// A bound decides which keys have requests that a limit may refuse.
type bound struct {
	maxTokens float64 // the most tokens that a key may take at once
	pace      int     // index of a rate; -1 if the limit is slower than all rates
	extra     float64 // tokens that the limit needs in addition to the peak
}

// boundOf returns the bound of a policy. If a key's peak is below it, the policy cannot refuse the key anything.
//
// A bucket that is refilled in batches may have fewer tokens than an evenly filled bucket, but by less than a batch. A
// window, aligned or sliding, never refuses a key that never asks for more than the window's tokens within two windows.
// In that time, the key can ask for at most its peak at a rate plus the tokens that a bucket loses at this rate. This
// is true for each of the rates.
func boundOf(p engine.Policy) bound {
	b := bound{maxTokens: float64(p.Limit()), pace: -1}
	rate := p.Rate().PerSecond() * (1 - 1./512)
	windows := !spec.HasBurst(p.Algorithm())
	if windows {
		rate /= 4 // half of the tokens, in two windows
	}
	if p.Algorithm() == engine.AlgorithmBatchRefill {
		b.extra = p.Rate().Tokens
	}
	for b.pace+1 < paces && pace(b.pace+1) <= rate {
		b.pace++
	}
	if windows && b.pace >= 0 {
		b.extra = pace(b.pace) * 2 * p.Window().Seconds()
	}
	return b
}

// mayRefuse reports whether the limit may refuse a request of the key. The engine rounds the time of each token up by
// at most a nanosecond. Even at the fastest rate that is tried, this costs the key less than one token in 512, plus one
// token.
func (p *peaks) mayRefuse(b bound, key int) bool {
	total := float64(p.totals[key])
	if total+1+total/512 <= b.maxTokens {
		return false
	}
	row := p.row[key]
	if row < 0 || b.pace < 0 {
		return true
	}
	peak := p.levels[row][b.pace] + b.extra
	return peak+1+peak/512 > b.maxTokens
}
