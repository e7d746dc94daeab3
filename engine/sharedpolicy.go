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

// numbers returns the policies as numbers, with the limiter's own policy first. The numbers of windows have ps.longest
// and ps.rounded as period and refill, because windows have neither. A tier that is unlimited or blocked still has its
// latest numbers.
func (ps policies) numbers() (numbers []uint64) {
	numbers = ps.base.numbers(ps.base.grant, max(ps.quotas, ps.base.limit))
	if ps.base.hasWindows() {
		numbers[periodNumber], numbers[refillNumber] = uint64(ps.longest), ps.rounded
	}
	for i, p := range ps.all {
		if i > 0 {
			numbers = append(numbers, ps.last[i].numbers(p.grant, ps.room[i])...)
		} else {
			numbers = append(numbers, p.numbers(p.grant, ps.room[i])...)
		}
	}
	return numbers
}

func (p Policy) numbers(grant grant, room uint64) []uint64 {
	what := uint64(p.algorithm) | uint64(grant)<<grantShift
	if p.aligned {
		what |= 1 << alignedShift
	}
	return []uint64{
		what, math.Float64bits(p.rate.Tokens), uint64(p.rate.Period), p.limit, p.refill, uint64(p.window), room,
	}
}

// policiesOfNumbers returns the policies that the numbers represent. The numbers may have any value: policies.plan
// checks whether the policies are valid.
func policiesOfNumbers(numbers []uint64, of *atomicbucket.Calendar) (policies, error) {
	var all, last []Policy
	var room []uint64
	var longest time.Duration
	var rounded uint64
	for ; len(numbers) >= policyNumbers; numbers = numbers[policyNumbers:] {
		what, most := numbers[0], uint64(atomicbucket.MaxBurst)
		if len(all) == 0 {
			most = math.MaxInt64
		}
		p := Policy{
			algorithm: Algorithm(what), grant: grant(what >> grantShift), aligned: what>>alignedShift == 1,
			rate:  Rate{math.Float64frombits(numbers[1]), time.Duration(numbers[2])},
			limit: numbers[3], refill: numbers[4], window: time.Duration(numbers[5]),
		}
		if p.hasWindows() && len(all) == 0 {
			longest, rounded, p.rate.Period, p.refill = p.rate.Period, p.refill, 0, 0
		}
		if of != nil && (p.algorithm != NoAlgorithm || len(all) == 0) {
			if p.algorithm != AlgorithmFixedWindow || !p.aligned || p.window != of.Period().Longest() {
				return policies{}, fmt.Errorf("policy %d is %v: the table is of a %v of %s", len(all), p, of.Period(), of.Zone())
			}
			p.per, p.calendar = of.Period(), of
		}
		latest := p
		if p.isFixed() && len(all) > 1 && p.algorithm != NoAlgorithm {
			latest.grant, p = grantsLimit, Policy{grant: p.grant}
		}
		if int(latest.algorithm) >= len(algorithmNames) || p.grant > grantsQuotas || what>>alignedShift > 1 ||
			p.isFixed() && p != (Policy{grant: p.grant}) || latest.limit > numbers[6] || numbers[6] > most ||
			p.grant == grantsQuotas && p != TokenBuckets(p.window) {
			return policies{}, fmt.Errorf("policy %d begins with %#x, which no policy does", len(all), what)
		}
		all, last, room = append(all, p), append(last, latest), append(room, numbers[6])
	}
	if len(numbers) > 0 || len(all) < 2 {
		return policies{}, fmt.Errorf("policies of %d numbers: want some of %d each", len(all)*policyNumbers+len(numbers), policyNumbers)
	}
	if err := checkTiers(all[2:]); err != nil {
		return policies{}, err
	}
	ps := policies{all[0], all[1:], last[1:], room[1:], room[0], longest, rounded}
	if ps.last[0] = ps.base; ps.base.hasWindows() && ps.quotas < anyQuota {
		ps.quotas = 0 // it is the room for the limits of tiers
	}
	if ps.base.hasWindows() && (longest < ps.base.window || longest > atomicbucket.MaxWindow || rounded > atomicbucket.MaxCount) {
		return policies{}, fmt.Errorf("a longest window of %v, and %d rounded up: want %v to %v, and at most %d",
			longest, rounded, ps.base.window, atomicbucket.MaxWindow, atomicbucket.MaxCount)
	}
	if own := ps.all[0]; own != ps.base && !own.isFixed() {
		return policies{}, fmt.Errorf("policy %v of a limiter of %v", own, ps.base)
	}
	return ps, nil
}

// builder returns the function that makes a plan from numbers.
func (ps policies) builder(terms terms) func(numbers []uint64) (*shard.Plan, error) {
	return func(numbers []uint64) (*shard.Plan, error) {
		to, err := policiesOfNumbers(numbers, ps.base.calendar)
		if err != nil {
			return nil, err
		}
		if to.base.Kind() != ps.base.Kind() || len(to.all) != len(ps.all) {
			return nil, fmt.Errorf("%v with %d tiers: the table is of %s", to.base, len(to.all)-1, ps.base.Kind())
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
		return fmt.Sprintf("%v, %v of %s, rules %016x", p.algorithm, p.per, p.calendar.Zone(), p.calendar.Sum())
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
func (c *config) agree(table *shard.Table, own *shard.Plan, clock *clock) error {
	table.Complete(clock.surely)
	has, wants := table.Plan().Source().(*policies), own.Source().(*policies)
	if has == wants { // the policies of the file are not valid, so the table uses the plan of this process
		return errors.New("policy: that of the file is damaged: remove the file")
	}
	for i, p := range wants.all {
		switch {
		case has.all[i] == p:
			continue
		case !c.replaces:
			name := "policy"
			if i > 0 {
				name = fmt.Sprintf("tier %d", i)
			}
			return fmt.Errorf("%s: the file has %q, this process wants %q: give all processes the same numbers, "+
				"or change those of the file (engine.ReplacePolicy, SetPolicy)", name, has.all[i], p)
		}
		return has.change(wants.all, table, c.terms, clock)
	}
	return nil
}

// change replaces the policies of a shared table. It starts over if another process makes a larger quota in the
// meantime.
func (ps policies) change(to []Policy, table *shard.Table, terms terms, clock *clock) error {
	for {
		after, err := ps.known(table).changed(to)
		if err != nil {
			return err
		}
		if after.base.Kind() != ps.base.Kind() {
			return fmt.Errorf("engine: SetPolicy(%v): the file is of %s, and stays of that", to[0], ps.base.Kind())
		}
		if _, err := after.plan(table.Plan().Algorithm(), terms); err != nil {
			return err
		}
		err = retried(func() bool {
			return table.ReplaceKnowing(after.quotas, after.numbers(), clock.surely) || table.Largest() > after.quotas
		})
		if err != nil {
			return fmt.Errorf("engine: the policy %v: %w", to[0], err)
		} else if table.Largest() <= after.quotas {
			return nil
		}
	}
}

// replaceTime is how long a process waits at most while another process replaces the policies.
const replaceTime = 5 * time.Second

// retried repeats the function do until it succeeds, or returns an error after replaceTime.
func retried(do func() bool) error {
	for began := time.Now(); !do(); time.Sleep(time.Millisecond) {
		if time.Since(began) > replaceTime {
			return fmt.Errorf("another process has been about to change the policy of the file for %v: is it stopped?", replaceTime)
		}
	}
	return nil
}
