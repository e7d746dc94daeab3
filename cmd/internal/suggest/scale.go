package suggest

import (
	"slices"
	"sort"
	"time"

	"github.com/weir-go/weir/cmd/internal/config"
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/engine"
)

// A scale is numbers that differ in the rate only, the lowest first.
type scale []step

// A step is one choice of numbers.
type step struct {
	limit.Numbers
	window time.Duration // 0 for a bucket
}

func (s step) point() Point {
	p := Point{Rate: s.Rate, Window: s.window, Policy: s.Policy()}
	if s.Burst != nil {
		p.Burst = *s.Burst
	}
	return p
}

// made returns the steps that the engine has a limiter for: a sliding log, for one, ends at 4,096.
func (s scale) made() scale {
	return s[:sort.Search(len(s), func(i int) bool { return s[i].Policy().Check() != nil })]
}

// ladder returns a scale for each burst, or each window, worth trying, and the period that the
// rule has, 0 for a token bucket.
func ladder(rule *config.Rule, r *requests) (scales []scale, period time.Duration) {
	at := func(rate engine.Rate) limit.Numbers {
		return limit.Numbers{Algorithm: rule.Policy.Algorithm(), Rate: rate, Aligned: rule.Policy.IsAligned()}
	}
	full := func(rate engine.Rate, burst uint64) step {
		n := at(rate)
		n.Burst = &burst
		return step{Numbers: n}
	}
	switch rule.Policy.Algorithm() {
	case engine.AlgorithmFixedWindow, engine.AlgorithmSlidingWindow, engine.AlgorithmSlidingLog:
		period = rule.Policy.Window()
		for _, window := range windows(period, r.span) {
			scales = append(scales, whole(window, r.most, func(rate engine.Rate) step {
				return step{at(rate), window}
			}))
		}
	case engine.AlgorithmBatchRefill:
		period = rule.Policy.Rate().Period()
		for _, burst := range bursts(r.dearest, r.most) {
			scales = append(scales,
				whole(period, burst, func(rate engine.Rate) step { return full(rate, burst) }))
		}
	case engine.AlgorithmTokenBucket:
		for _, burst := range bursts(r.dearest, r.most) {
			var s scale
			for _, rate := range rates {
				s = append(s, full(rate, burst))
				if rate.PerSecond() >= float64(burst) {
					break // a full bucket a second: stamps of whole seconds cannot tell more
				}
			}
			scales = append(scales, s)
		}
	case engine.AlgorithmConcurrency, engine.NoAlgorithm:
	}
	return scales, period
}

// wholeSteps bounds a scale of whole numbers: above it they go up by less than a thousandth.
const wholeSteps = 4096

// whole is the scale of 1, 2, 3, ... up to most tokens in a time, with wider steps above
// wholeSteps.
func whole(period time.Duration, most uint64, make func(engine.Rate) step) (s scale) {
	for n := uint64(1); ; n += 1 + n/wholeSteps {
		n = min(n, most)
		s = append(s, make(engine.Per(float64(n), period)))
		if n == most {
			return s
		}
	}
}

// bursts are 1 to 9, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, ... from the cost of the
// dearest request up to the first that is all that any key asked for.
func bursts(dearest, most uint64) (all []uint64) {
	series := []uint64{10, 20, 30, 40, 50, 60, 70, 80, 90}
	for ten := uint64(1); ; ten *= 10 {
		for _, n := range series {
			if b := n * ten / 10; b >= dearest {
				all = append(all, b)
				if b >= most || b > 1<<31 {
					return all
				}
			}
		}
		series = []uint64{10, 12, 15, 20, 25, 30, 40, 50, 60, 80}
	}
}

// windows are the rule's own and some usual ones, those not longer than the log.
func windows(period, span time.Duration) []time.Duration {
	all := []time.Duration{period}
	for _, w := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour,
		24 * time.Hour} {
		if w <= span && w != period {
			all = append(all, w)
		}
	}
	slices.Sort(all)
	return all
}

// rates are such as people write, from 1/d to 990000/s, each at most a tenth above the last but for
// the first ones.
var rates = allRates()

func allRates() (all []engine.Rate) {
	add := func(first, last, by int, period time.Duration) {
		for n := first; n <= last; n += by {
			all = append(all, engine.Per(float64(n), period))
		}
	}
	add(1, 99, 1, 24*time.Hour)
	for _, period := range []time.Duration{time.Hour, time.Minute} {
		first := 17 // 17 an hour is more than 990 an hour before
		if period == time.Hour {
			first = 5 // more than 99 a day
		}
		add(first, 99, 1, period)
		add(100, 990, 10, period)
	}
	add(17, 99, 1, time.Second)
	for ten := 10; ten <= 10_000; ten *= 10 {
		add(10*ten, 99*ten, ten, time.Second)
	}
	return all
}
