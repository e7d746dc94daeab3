package engine

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// The memory of a shared table contains its policies as numbers. Every process makes its own plan from these numbers.

// These constants describe the numbers of one policy: how many there are, and the places of period and refill.
const (
	policyNumbers = 7
	periodNumber  = 2
	refillNumber  = 4
)

const (
	grantShift   = 8
	alignedShift = 16
)

// numbers returns the policies as numbers: first base, then the limiter's own policy, then its tiers. If base has
// windows, its numbers have longestWindow and maxEstimate as period and refill, because windows have neither. A tier
// that is unlimited or blocked still has its latest numbers.
func (s policySet) numbers() (numbers []uint64) {
	numbers = s.base.numbers(s.base.grant, max(s.quotaDebt, s.base.limit))
	if s.base.hasWindows() {
		numbers[periodNumber], numbers[refillNumber] = uint64(s.longestWindow), s.maxEstimate
	}
	for i, p := range s.byTier {
		if i > 0 {
			numbers = append(numbers, s.bases[i].numbers(p.grant, s.highest[i])...)
		} else {
			numbers = append(numbers, p.numbers(p.grant, s.highest[i])...)
		}
	}
	return numbers
}

func (p Policy) numbers(grant grant, room uint64) []uint64 {
	kind := uint64(p.algorithm) | uint64(grant)<<grantShift
	if p.aligned {
		kind |= 1 << alignedShift
	}
	return []uint64{
		kind, math.Float64bits(p.rate.Tokens), uint64(p.rate.Period), p.limit, p.refill, uint64(p.window), room,
	}
}

// parsePolicies returns the policies that the numbers represent: first base, then the limiter's own policy, then its
// tiers. The numbers may have any value: policySet.plan checks whether the policies are valid.
func parsePolicies(numbers []uint64, calendar *atomicbucket.Calendar) (policySet, error) {
	var policies, bases []Policy
	var highest []uint64
	var longestWindow time.Duration
	var maxEstimate uint64
	for ; len(numbers) >= policyNumbers; numbers = numbers[policyNumbers:] {
		kind, bound := numbers[0], uint64(atomicbucket.MaxBurst)
		if len(policies) == 0 {
			bound = math.MaxInt64
		}
		p := Policy{
			algorithm: Algorithm(kind), grant: grant(kind >> grantShift), aligned: kind>>alignedShift == 1,
			rate:  Rate{math.Float64frombits(numbers[1]), time.Duration(numbers[2])},
			limit: numbers[3], refill: numbers[4], window: time.Duration(numbers[5]),
		}
		if p.hasWindows() && len(policies) == 0 {
			longestWindow, maxEstimate, p.rate.Period, p.refill = p.rate.Period, p.refill, 0, 0
		}
		if calendar != nil && (p.algorithm != NoAlgorithm || len(policies) == 0) {
			if p.algorithm != AlgorithmFixedWindow || !p.aligned || p.window != calendar.Period().Longest() {
				return policySet{}, fmt.Errorf("policy %d is %v: the table is of a %v of %s", len(policies), p, calendar.Period(), calendar.Zone())
			}
			p.period, p.calendar = calendar.Period(), calendar
		}
		base := p
		if p.isFixed() && len(policies) > 1 && p.algorithm != NoAlgorithm {
			base.grant, p = grantsLimit, Policy{grant: p.grant}
		}
		if int(base.algorithm) >= len(algorithmNames) || p.grant > grantsQuotas || kind>>alignedShift > 1 ||
			p.isFixed() && p != (Policy{grant: p.grant}) || base.limit > numbers[6] || numbers[6] > bound ||
			p.grant == grantsQuotas && p != TokenBuckets(p.window) {
			return policySet{}, fmt.Errorf("policy %d begins with %#x, which no policy does", len(policies), kind)
		}
		policies, bases, highest = append(policies, p), append(bases, base), append(highest, numbers[6])
	}
	if len(numbers) > 0 || len(policies) < 2 {
		return policySet{}, fmt.Errorf("policies of %d numbers: want some of %d each", len(policies)*policyNumbers+len(numbers), policyNumbers)
	}
	if err := checkTiers(policies[2:]); err != nil {
		return policySet{}, err
	}
	s := policySet{policies[0], policies[1:], bases[1:], highest[1:], highest[0], longestWindow, maxEstimate}
	if s.bases[0] = s.base; s.base.hasWindows() && s.quotaDebt < anyQuota {
		s.quotaDebt = 0 // it is the room for the limits of tiers
	}
	if s.base.hasWindows() && (longestWindow < s.base.window || longestWindow > atomicbucket.MaxWindow || maxEstimate > atomicbucket.MaxCount) {
		return policySet{}, fmt.Errorf("a longest window of %v, and %d rounded up: want %v to %v, and at most %d",
			longestWindow, maxEstimate, s.base.window, atomicbucket.MaxWindow, atomicbucket.MaxCount)
	}
	if policy := s.byTier[0]; policy != s.base && !policy.isFixed() {
		return policySet{}, fmt.Errorf("policy %v of a limiter of %v", policy, s.base)
	}
	return s, nil
}

// builder returns the function that makes a plan from numbers.
func (s policySet) builder(terms terms) func(numbers []uint64) (*shard.Plan, error) {
	return func(numbers []uint64) (*shard.Plan, error) {
		to, err := parsePolicies(numbers, s.base.calendar)
		if err != nil {
			return nil, err
		}
		if to.base.Kind() != s.base.Kind() || len(to.byTier) != len(s.byTier) {
			return nil, fmt.Errorf("%v with %d tiers: the table is of %s", to.base, len(to.byTier)-1, s.base.Kind())
		}
		return to.plan(nil, terms)
	}
}

// Kind returns the part of a policy that [Limiter.SetPolicy] cannot change in a file of [Shared] limiters: the
// algorithm, whether windows are aligned, and the calendar of a [CalendarWindow]. The calendar includes a number that
// changes with the rules of the zone in this program's time zone data. With a separate file for each kind, New never
// returns an error about the kind.
func (p Policy) Kind() string {
	switch {
	case p.calendar != nil:
		return fmt.Sprintf("%v, %v of %s, rules %016x", p.algorithm, p.period, p.calendar.Zone(), p.calendar.Sum())
	case p.isFixed() || p.grant == grantsQuotas:
		return "token buckets"
	case p.algorithm == AlgorithmConcurrency:
		return fmt.Sprintf("%v, forgotten after %v", p.algorithm, p.window)
	case p.aligned:
		return p.algorithm.String() + ", aligned"
	}
	return p.algorithm.String()
}

// agree ensures that a process and the table have the same policies, or returns an error. It first completes a change
// that a dead process had announced. Otherwise that change would later replace the policies again.
func (c *config) agree(table *shard.Table, plan *shard.Plan, clock *clock) error {
	table.Complete(clock.exactNanos)
	inFile, want := table.Plan().Source().(*policySet), plan.Source().(*policySet)
	if inFile == want { // the policies of the file are not valid, so the table uses the plan of this process
		return errors.New("policy: that of the file is damaged: remove the file")
	}
	for i, p := range want.byTier {
		switch {
		case inFile.byTier[i] == p:
			continue
		case !c.replacePolicy:
			name := "policy"
			if i > 0 {
				name = fmt.Sprintf("tier %d", i)
			}
			return fmt.Errorf("%s: the file has %q, this process wants %q: give all processes the same numbers, "+
				"or change those of the file (engine.ReplacePolicy, SetPolicy)", name, inFile.byTier[i], p)
		}
		return inFile.replace(want.byTier, table, c.terms, clock)
	}
	return nil
}

// replace changes the policies of a shared table. It starts over if another process makes a larger quota meanwhile.
func (s policySet) replace(to []Policy, table *shard.Table, terms terms, clock *clock) error {
	for {
		after, err := s.withLargestDebt(table).withPolicies(to)
		if err != nil {
			return err
		}
		if after.base.Kind() != s.base.Kind() {
			return fmt.Errorf("engine: SetPolicy(%v): the file is of %s, and stays of that", to[0], s.base.Kind())
		}
		if _, err := after.plan(table.Plan().Algorithm(), terms); err != nil {
			return err
		}
		err = retry(func() bool {
			return table.ReplaceKnowing(after.quotaDebt, after.numbers(), clock.exactNanos) || table.Largest() > after.quotaDebt
		})
		if err != nil {
			return fmt.Errorf("engine: the policy %v: %w", to[0], err)
		} else if table.Largest() <= after.quotaDebt {
			return nil
		}
	}
}

// replaceTime is how long a process waits at most while another process replaces the policies.
const replaceTime = 5 * time.Second

// retry repeats the function try until it succeeds, or returns an error after replaceTime.
func retry(try func() bool) error {
	for began := time.Now(); !try(); time.Sleep(time.Millisecond) {
		if time.Since(began) > replaceTime {
			return fmt.Errorf("another process has been about to change the policy of the file for %v: is it stopped?", replaceTime)
		}
	}
	return nil
}
