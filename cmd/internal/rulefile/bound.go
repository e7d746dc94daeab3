package rulefile

import (
	"fmt"

	"github.com/weir-go/weir/cmd/internal/usage"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// With a bucket algorithm, a key may owe at most the product of debtOfBuckets and the limit. With another algorithm, it
// may owe at most the limit ([engine.MaxDebt]).
const debtOfBuckets = 10

// Bound returns how many tokens the requests of a key can cost at most, as the sum that docs/budgets.md describes. Each
// line is one term of the sum. It is nil for a rule without tokens.
func (r *Rule) Bound() []string {
	t := r.Tokens
	if t == nil || r.Constant != Counted {
		return nil
	}
	debt := r.Policy.Limit()
	if spec.HasBurst(r.Policy.Algorithm()) {
		debt *= debtOfBuckets
	}
	lines := []string{
		fmt.Sprintf("in any time T a key's requests cost at most %s", r.ofHolds()),
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

// ofHolds returns the first term of [Rule.Bound]: as text, how many tokens can be held at most in any time T.
func (r *Rule) ofHolds() string {
	limit, rate := r.Policy.Limit(), r.Policy.Rate()
	per, zone, calendar := r.Policy.Calendar()
	switch a := r.Policy.Algorithm(); {
	case calendar:
		return fmt.Sprintf("%d for each %v of %s that T touches", limit, per, zone)
	case a == engine.AlgorithmTokenBucket, a == engine.AlgorithmBatchRefill:
		return fmt.Sprintf("%d + %v * T", limit, rate)
	case a == engine.AlgorithmSlidingLog:
		return fmt.Sprintf("%d in each %v", limit, r.Policy.Window())
	}
	return fmt.Sprintf("%d for each %v that T touches", limit, r.Policy.Window())
}

// overdraft returns, as text, how much a request may cost beyond its hold.
func (t *Tokens) overdraft() string {
	most := fmt.Sprintf("at most %d each", t.scaledMost())
	switch {
	case t.From != CostPlace{}:
		return fmt.Sprintf("%s, of which %d are held", most, t.Estimate.N)
	case t.Clamp && t.Estimate.Kind == EstimateWorst:
		return "by how much a prompt exceeds its estimate or the limit"
	case t.Estimate.Kind == EstimateWorst:
		return fmt.Sprintf("what a prompt is above its estimate, an estimate above the limit, and an answer above %d tokens if the request does not bound it, %s",
			t.DefaultOutput, most)
	case t.Estimate.Kind == EstimateLearned:
		return "for one in 20 requests, the part above the usual cost, " + most
	case t.Estimate.Kind == EstimateNone:
		return "all but one token, " + most
	}
	held := t.Estimate.N/max(t.Scale, 1) + min(t.Estimate.N%max(t.Scale, 1), 1)
	return fmt.Sprintf("what is above %d, %s", held, most)
}

// scaledMost returns the largest cost that an answer can report, in tokens of the limit.
func (t *Tokens) scaledMost() uint64 {
	if t.From != (CostPlace{}) {
		return usage.MaxField
	}
	most := t.Count.Weights.Most()
	for _, m := range t.Count.Models {
		most = max(most, m.Weights.Most())
	}
	scale := max(t.Scale, 1)
	return most/scale + min(most%scale, 1)
}
