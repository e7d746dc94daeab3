package suggest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/cmd/weir/internal/limit"
	"github.com/weir-go/weir/engine"
)

// A scale is numbers that differ in the rate only, the lowest first.
type scale []step

// A step is one choice of numbers.
type step struct {
	rate   engine.Rate
	burst  uint64
	window time.Duration
	most   uint64 // that a key can have at once
	policy func(engine.Rate, uint64) engine.Policy
}

func (s step) point() Point {
	return Point{Rate: s.rate, Burst: s.burst, Window: s.window, Policy: s.policy(s.rate, s.most)}
}

// made reports whether the engine has such a limiter: a sliding log, for one, ends at 4,096.
func (s step) made() bool {
	limiter, err := engine.New(s.policy(s.rate, s.most), engine.MaxKeys(1))
	if err != nil {
		return false
	}
	_ = limiter.Close() // always nil
	return true
}

// ladder returns a scale for each burst, or each window, worth trying, and the period that the
// rule has, 0 for a token bucket.
func ladder(rule *config.Rule, r *requests) (scales []scale, period time.Duration) {
	a := limit.Find(rule.Algorithm)
	if a.WantsWhole() {
		_, period, _ = rule.Rate.Whole() // it is whole
	}
	policy := func(rate engine.Rate, burst uint64) engine.Policy {
		if !a.HasBurst() {
			return a.Policy(limit.Rate{Rate: rate}, nil, rule.Aligned)
		}
		return a.Policy(limit.Rate{Rate: rate}, &burst, false)
	}
	if !a.HasBurst() {
		for _, window := range windows(period, r.span) {
			scales = append(scales, whole(window, r.most, func(rate engine.Rate, n uint64) step {
				return step{rate, 0, window, n, policy}
			}))
		}
		return scales, period
	}
	for _, burst := range bursts(r.dearest, r.most) {
		if a.RefillsAtOnce() {
			scales = append(scales, whole(period, burst, func(rate engine.Rate, _ uint64) step {
				return step{rate, burst, 0, burst, policy}
			}))
			continue
		}
		var s scale
		for _, rate := range rates {
			s = append(s, step{rate, burst, 0, burst, policy})
			if perSecond(rate) >= float64(burst) {
				break // a full bucket a second: stamps of whole seconds cannot tell more
			}
		}
		scales = append(scales, s)
	}
	return scales, period
}

// wholeSteps bounds a scale of whole numbers: above it they go up by less than a thousandth.
const wholeSteps = 4096

// whole is the scale of 1, 2, 3, ... up to most tokens in a time, with wider steps above
// wholeSteps.
func whole(period time.Duration, most uint64, make func(engine.Rate, uint64) step) (s scale) {
	for n := uint64(1); ; n += 1 + n/wholeSteps {
		n = min(n, most)
		s = append(s, make(engine.Per(float64(n), period), n))
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
	for _, w := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour} {
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

// perSecond reads a rate back from its text.
func perSecond(r engine.Rate) float64 {
	n, text, _ := strings.Cut(r.String(), "/")
	tokens, _ := strconv.ParseFloat(n, 64)
	return tokens / period(text).Seconds()
}

// period reads the second half of a rate: a unit or a duration.
func period(text string) time.Duration {
	if text == "d" {
		return 24 * time.Hour
	}
	if !strings.ContainsAny(text, "0123456789") {
		text = "1" + text
	}
	d, _ := time.ParseDuration(text) // the engine wrote it
	return d
}
