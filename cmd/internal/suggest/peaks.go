package suggest

import (
	"math"
	"time"

	"github.com/weir-go/weir/cmd/internal/trace"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

const (
	// paces is how many rates there are for which the peaks of a key are known.
	paces = 24
	// slowest is the first rate, in tokens a second. Each rate is twice the one before it. The rate 1/d is above the
	// first.
	slowest = 0.5 / 86400
	// few: for a key whose total cost is at most this, the peaks are not worth their memory.
	few = 16
)

func pace(i int) float64 { return math.Ldexp(slowest, i) }

// Peaks has, for each key and each pace, how full a bucket without a limit would have been at most if it were emptied
// at that pace. This is the smallest burst with which a token bucket of that rate refuses the key nothing. A larger
// limit cannot refuse the key anything either, so the key is left out when that limit is tried.
type peaks struct {
	totals []uint64
	row    []int32 // of each key, in levels; -1 for a key of few requests
	levels [][paces]float64
}

func newPeaks(r *requests) (*peaks, error) {
	p := &peaks{totals: r.totals, row: make([]int32, len(r.totals))}
	for key, total := range r.totals {
		p.row[key] = -1
		if total > few {
			p.row[key] = int32(len(p.levels))
			p.levels = append(p.levels, [paces]float64{})
		}
	}
	type bucket struct {
		at     int64
		levels [paces]float64
	}
	now := make([]bucket, len(p.levels))
	err := r.each(func(q *trace.Request) bool {
		row := p.row[q.Key]
		if row < 0 {
			return true
		}
		b, peak, cost := &now[row], &p.levels[row], float64(q.Cost)
		// For a key's first request this is a long time, which does not matter because the bucket is empty.
		gone := time.Duration(q.UnixNano-b.at).Seconds() * slowest
		b.at = q.UnixNano
		for i := range b.levels {
			level := max(b.levels[i]-gone, 0) + cost
			b.levels[i], peak[i] = level, max(peak[i], level)
			gone *= 2
		}
		return true
	})
	return p, err
}

// A bound decides for which keys a limit may refuse requests.
type bound struct {
	most float64 // tokens that a key may have at once
	pace int     // -1 if the limit is slower than all paces
	more float64 // tokens that the limit needs above the peak
}

// boundOf returns the bound below which a key's peak cannot cause a refusal by the policy.
//
// A bucket that is refilled in batches is less than a batch behind one that is refilled evenly. A window refuses a key
// nothing if the key never asks for more than the window's tokens within the time of two windows. At a given pace, that
// amount is at most the peak plus what the pace empties in two windows. This covers aligned and sliding windows, too.
func boundOf(p engine.Policy) bound {
	b := bound{most: float64(p.Limit()), pace: -1}
	rate := p.Rate().PerSecond() * (1 - 1./512)
	windows := !spec.HasBurst(p.Algorithm())
	if windows {
		rate /= 4 // half of the tokens in two windows
	}
	if p.Algorithm() == engine.AlgorithmBatchRefill {
		b.more = p.Rate().Tokens
	}
	for b.pace+1 < paces && pace(b.pace+1) <= rate {
		b.pace++
	}
	if windows && b.pace >= 0 {
		b.more = pace(b.pace) * 2 * p.Window().Seconds()
	}
	return b
}

// mayRefuse reports whether the limit may refuse a key anything. The engine rounds the time of each token up by at most
// a nanosecond. That costs less than one token in 512 at the fastest rate that is tried, and one token at the end.
// mayRefuse allows for both.
func (p *peaks) mayRefuse(b bound, key int) bool {
	total := float64(p.totals[key])
	if total+1+total/512 <= b.most {
		return false
	}
	row := p.row[key]
	if row < 0 || b.pace < 0 {
		return true
	}
	peak := p.levels[row][b.pace] + b.more
	return peak+1+peak/512 > b.most
}
