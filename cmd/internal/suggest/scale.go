package suggest

import (
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

func periods(own, span time.Duration) []time.Duration {
	var all []time.Duration
	for _, p := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour, own} {
		if p > 0 && supported(p, span) {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// amounts returns round numbers: 1 to 9, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, ... They begin at the
// largest cost of a request. They end at abusiveTimes times the number that is enough for every key.
func amounts(dearest, most uint64) (all []uint64) {
	series := []uint64{10, 20, 30, 40, 50, 60, 70, 80, 90}
	for ten := uint64(1); ; ten *= 10 {
		for _, n := range series {
			if b := n * ten / 10; b >= dearest {
				all = append(all, b)
				if b/abusiveTimes >= most || b > 1<<31 {
					return all
				}
			}
		}
		series = []uint64{10, 12, 15, 20, 25, 30, 40, 50, 60, 80}
	}
}

// points returns limits for a period, with the algorithm of the rule. It leaves out limits that the engine cannot make.
// For example, a sliding log has at most 4,096 requests.
func points(rule *rulefile.Rule, period time.Duration, amounts []uint64) (all []Point) {
	algorithm := rule.Policy.Algorithm()
	for _, n := range amounts {
		p := Point{Rate: engine.Per(float64(n), period)}
		numbers := spec.Limit{
			Algorithm: algorithm, Numbers: spec.Numbers{Rate: spec.Of(p.Rate)}, Aligned: rule.Policy.IsAligned(),
		}
		if spec.HasBurst(algorithm) {
			p.Burst, numbers.Burst = n, &n
		}
		var err error
		if p.Policy, err = numbers.Policy(); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// curves tries the limits of every period. If all limits of a period refuse something, it leaves the period out,
// because the engine has no limit that is high enough.
func (r *requests) curves(rule *rulefile.Rule, periods []time.Duration, progress func(done, all int)) (all []Curve, err error) {
	amounts := amounts(r.dearest, r.most)
	for i, period := range periods {
		if progress != nil {
			progress(i, len(periods))
		}
		c := Curve{Period: period, Points: points(rule, period, amounts)}
		if err := r.try(c.Points); err != nil {
			return nil, err
		}
		none := slices.IndexFunc(c.Points, func(p Point) bool { return p.Refused == 0 })
		if none < 0 {
			continue
		}
		// This limit and higher limits refuse nothing. No goal needs more than abusiveTimes times this limit.
		need := abusiveTimes * c.Points[none].Rate.Tokens
		if enough := slices.IndexFunc(c.Points, func(p Point) bool { return p.Rate.Tokens >= need }); enough >= 0 {
			c.Points = c.Points[:enough+1]
		}
		all = append(all, c)
	}
	return all, nil
}
