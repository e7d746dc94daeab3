package suggest

import (
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

func periods(rulePeriod, span time.Duration) []time.Duration {
	var list []time.Duration
	for _, p := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour, rulePeriod} {
		if p > 0 && isSupported(p, span) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// amounts returns round numbers: 1 to 9, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, ... They begin at the
// largest cost of a request. They end at abusiveTimes times the number that is enough for every key.
func amounts(maxCost, maxTotal uint64) (numbers []uint64) {
	series := []uint64{10, 20, 30, 40, 50, 60, 70, 80, 90}
	for ten := uint64(1); ; ten *= 10 {
		for _, n := range series {
			if b := n * ten / 10; b >= maxCost {
				numbers = append(numbers, b)
				if b/abusiveTimes >= maxTotal || b > 1<<31 {
					return numbers
				}
			}
		}
		series = []uint64{10, 12, 15, 20, 25, 30, 40, 50, 60, 80}
	}
}

// points returns limits for a period, with the algorithm of the rule. It leaves out limits that the engine cannot make.
// For example, a sliding log has at most 4,096 requests.
func points(rule *rulefile.Rule, period time.Duration, amounts []uint64) (list []Point) {
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
			list = append(list, p)
		}
	}
	return list
}

// curves tries the limits of every period. If all limits of a period refuse something, it leaves the period out,
// because the engine has no limit that is high enough.
func (r *requests) curves(rule *rulefile.Rule, periods []time.Duration, progress func(done, total int)) (list []Curve, err error) {
	amounts := amounts(r.maxCost, r.maxTotal)
	for i, period := range periods {
		if progress != nil {
			progress(i, len(periods))
		}
		c := Curve{Period: period, Points: points(rule, period, amounts)}
		if err := r.try(c.Points); err != nil {
			return nil, err
		}
		noRefusals := slices.IndexFunc(c.Points, func(p Point) bool { return p.Refused == 0 })
		if noRefusals < 0 {
			continue
		}
		// This limit and higher limits refuse nothing. No goal needs more than abusiveTimes times this limit.
		minTokens := abusiveTimes * c.Points[noRefusals].Rate.Tokens
		if last := slices.IndexFunc(c.Points, func(p Point) bool { return p.Rate.Tokens >= minTokens }); last >= 0 {
			c.Points = c.Points[:last+1]
		}
		list = append(list, c)
	}
	return list, nil
}
