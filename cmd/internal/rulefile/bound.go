package rulefile

import (
	"fmt"

	"github.com/weir-go/weir/cmd/internal/usage"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// bucketDebtFactor times the limit is the largest debt of a key with a bucket algorithm. With another algorithm, a key
// may owe at most the limit ([engine.MaxDebt]).
const bucketDebtFactor = 10

// Bound returns how many tokens the requests of a key can cost at most, as the sum that docs/budgets.md describes. Each
// line is one term of the sum. It is nil for a rule without tokens.
func (r *Rule) Bound() []string {
	t := r.Tokens
	if t == nil || r.Constant != Counted {
		return nil
	}
	debt := r.Policy.Limit()
	if spec.HasBurst(r.Policy.Algorithm()) {
		debt *= bucketDebtFactor
	}
	lines := []string{
		fmt.Sprintf("in any time T a key's requests cost at most %s", r.holdsBound()),
		"+ what requests cost beyond what is held for them: " + t.overdraft(),
		fmt.Sprintf("+ costs that are not charged to a key because it owes %d tokens", debt),
	}
	if t.Scale > 1 {
		lines[0] += fmt.Sprintf(", in tokens of %d units", t.Scale)
	}
	if r.Tiers != nil || r.Quota != nil {
		lines = append(lines, "with the numbers of its tier or quota, if it has one")
	}
	if r.Store != nil {
		lines = append(lines, fmt.Sprintf("+ what %d machines may have in hand or owe: docs/distributed.md", r.Store.Nodes))
	}
	return lines
}

// holdsBound returns the first term of [Rule.Bound] as text: how many tokens can be held at most in any time T.
func (r *Rule) holdsBound() string {
	limit, rate := r.Policy.Limit(), r.Policy.Rate()
	period, zone, isCalendar := r.Policy.Calendar()
	switch algorithm := r.Policy.Algorithm(); {
	case isCalendar:
		return fmt.Sprintf("%d for each %v of %s that T touches", limit, period, zone)
	case algorithm == engine.AlgorithmTokenBucket, algorithm == engine.AlgorithmBatchRefill:
		return fmt.Sprintf("%d + %v * T", limit, rate)
	case algorithm == engine.AlgorithmSlidingLog:
		return fmt.Sprintf("%d in each %v", limit, r.Policy.Window())
	}
	return fmt.Sprintf("%d for each %v that T touches", limit, r.Policy.Window())
}

// overdraft returns, as text, how much a request may cost beyond its hold.
func (t *Tokens) overdraft() string {
	limitText := fmt.Sprintf("at most %d each", t.maxScaledCost())
	switch {
	case t.From != CostPlace{}:
		return fmt.Sprintf("%s, of which %d are held", limitText, t.Estimate.N)
	case t.Clamp && t.Estimate.Kind == EstimateWorst:
		return "by how much a prompt exceeds its estimate or the limit"
	case t.Estimate.Kind == EstimateWorst:
		return fmt.Sprintf("what a prompt is above its estimate, an estimate above the limit, and an answer above %d tokens if the request does not bound it, %s",
			t.DefaultOutput, limitText)
	case t.Estimate.Kind == EstimateLearned:
		return "for one in 20 requests, the part above the usual cost, " + limitText
	case t.Estimate.Kind == EstimateNone:
		return "all but one token, " + limitText
	}
	holdTokens := t.Estimate.N/max(t.Scale, 1) + min(t.Estimate.N%max(t.Scale, 1), 1)
	return fmt.Sprintf("what is above %d, %s", holdTokens, limitText)
}

// maxScaledCost returns the largest cost that an answer can report, in tokens of the limit.
func (t *Tokens) maxScaledCost() uint64 {
	if t.From != (CostPlace{}) {
		return usage.MaxField
	}
	maxCost := t.Count.Weights.MaxCost()
	for _, m := range t.Count.Models {
		maxCost = max(maxCost, m.Weights.MaxCost())
	}
	scale := max(t.Scale, 1)
	return maxCost/scale + min(maxCost%scale, 1)
}
