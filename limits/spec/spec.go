// Package spec describes a limit as people write it, and makes a policy of package engine from its numbers. Only this
// package knows which numbers fit together. Flags, rule files, Caddyfiles, the configuration of Envoy's service and
// commands of Redis are parsed into a [Limit]. [Limit.Policies] checks the numbers, and returns all problems as
// [Errors], with the keys of the wrong numbers. [PolicyOf] is for a limit that comes with each request. It does not
// check the numbers, because the engine does.
package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
)

// Ranges and defaults of numbers. Package engine has the ranges of rates and limits.
const (
	// MaxBurst is the largest burst, and the largest cost of a request.
	MaxBurst = 1 << 32
	// MinWait and MaxWait bound how long a request, and thus its connection, may wait for tokens.
	MinWait = time.Millisecond
	MaxWait = time.Minute
	// MinWindow and MaxWindow bound windows. MaxWindow is also the longest time in which a bucket may fill.
	MinWindow = time.Microsecond
	MaxWindow = 365 * 24 * time.Hour
	// MaxJitter bounds the random time that is added to a RetryAfter.
	MaxJitter = time.Hour
	// InFlight is the shortest time after which a request that has not ended may be forgotten. A server knows when each
	// of its requests ends, so no request should be forgotten earlier.
	InFlight = MaxWindow
	// IPv6Prefix is the default number of leading bits of an IPv6 address that identify a client. A provider usually
	// assigns at least all addresses with these bits to one customer.
	IPv6Prefix = 64
)

// Numbers are the numbers of a limit or of one of its tiers.
type Numbers struct {
	Rate Rate
	// Burst is the number of tokens in a full bucket, 1 to [MaxBurst]. nil means the tokens that the rate gives in its
	// period, but at least 1. Windows have no burst.
	Burst *uint64
	// Concurrency is how many requests may be in flight. It replaces the rate; 0 means that there is no such limit.
	Concurrency uint64
}

// A Tier has other numbers for some requests. The limit's number applies if the tier sets none.
type Tier struct {
	Name string
	Numbers
}

// A Limit is one limit with its features. A field is zero if the configuration does not set it.
type Limit struct {
	Numbers
	Algorithm engine.Algorithm // the algorithm for rates; [engine.NoAlgorithm] means the token bucket
	Aligned   bool             // fixed windows begin at multiples of their length (UTC)
	Zone      string           // the time zone for a period of the calendar: see [ParseZone]
	Tiers     []Tier
	Quota     uint64        // requests may bring other numbers, up to this many tokens; 0: they may not
	Base      engine.Policy // policy of the limiter that counts such requests; zero: a policy of the limit
	MaxWait   time.Duration // how long a request may wait for tokens, [MinWait] to [MaxWait]; 0: it does not wait
	Cost      uint64        // the most tokens that a request takes, 1 to [MaxBurst]; 0 means 1
	Refund    bool          // some answers give the tokens back
	Overflow  engine.OverflowPolicy
	Spread    bool // one bucket on all processors ([engine.Spread])
	Stored    bool // the limit is in a store that machines share
	// InStore makes a limiter in the store, to check quotas with it. It is nil unless the limit is Stored and has a
	// Quota. The limiter has the [StoredPolicy] of base, and room for quotas ([Room]). The function check returns an
	// error if the limiter does not accept a quota. The function end closes the limiter.
	InStore func(base engine.Policy, room uint64) (check func(engine.Policy) error, end func(), err error)
}

// Policies returns the policy of the limit's own numbers, and the policies of its tiers. A fixed rate gives
// [engine.Blocked] or [engine.Unlimited]. [ErrorsOf] returns all problems.
func (l *Limit) Policies() (policy engine.Policy, tiers []engine.Policy, err error) {
	var problems Errors
	if l.checkKind(&problems); l.Rate == (Rate{}) && l.Concurrency == 0 {
		return engine.Policy{}, nil, problems
	}
	if l.Algorithm == engine.NoAlgorithm {
		limit := *l
		limit.Algorithm, l = engine.AlgorithmTokenBucket, &limit
	}
	policy = l.policy(&problems, "", l.Numbers)
	l.checkPolicy(&problems, policy)
	for _, t := range l.Tiers {
		tiers = append(tiers, l.tier(&problems, t))
	}
	if len(problems) == 0 {
		l.checkEngine(&problems, policy, tiers)
	}
	if len(problems) == 0 {
		l.checkCost(&problems, policy, tiers)
	}
	switch {
	case len(problems) > 0 && l.Quota > 0:
		return engine.Policy{}, nil, planErrors{problems}
	case len(problems) > 0:
		return engine.Policy{}, nil, problems
	}
	return policy, tiers, nil
}

// Counts reports whether the limit counts requests. It does not if all its rates are [Blocked] or [Unlimited], and
// requests cannot bring other rates.
func (l *Limit) Counts() bool {
	isCounted := func(n Numbers) bool { return !n.Rate.IsFixed() }
	return l.Quota > 0 || isCounted(l.Numbers) || slices.ContainsFunc(l.Tiers, func(t Tier) bool { return isCounted(t.Numbers) })
}

// Policy returns the policy of a limit without tiers, as [Limit.Policies] does.
func (l *Limit) Policy() (engine.Policy, error) {
	policy, _, err := l.Policies()
	return policy, err
}

// checkKind adds errors for a limit with neither a rate nor a Concurrency, with both, or with an algorithm but no rate.
func (l *Limit) checkKind(problems *Errors) {
	switch {
	case l.Rate == Rate{} && l.Concurrency == 0:
		problems.add("", "rate", "it has neither a rate, such as 10/s, nor a concurrency")
	case l.Rate == Rate{} && l.Algorithm != engine.NoAlgorithm:
		problems.add("", "algorithm", "algorithm: it needs a rate, and the limit has none: leave it out")
	case l.Rate != Rate{} && l.Concurrency != 0:
		problems.add("", "concurrency", "concurrency %d: the limit has a rate, too: write a second limit for the concurrency", l.Concurrency)
	}
}

func (l *Limit) policy(problems *Errors, tier string, numbers Numbers) engine.Policy {
	if numbers.Concurrency != 0 && numbers.Rate == (Rate{}) {
		l.checkInFlight(problems, tier, numbers)
		return engine.Concurrency(numbers.Concurrency, InFlight)
	}
	traits, name := traitsOf(l.Algorithm), Name(l.Algorithm)
	if _, ok := numbers.Rate.Calendar(); ok {
		return l.calendar(problems, tier, numbers)
	}
	if numbers.Rate.IsFixed() {
		if numbers.Burst != nil {
			problems.add(tier, "burst", "burst %d: a rate of %v has none: leave it out", *numbers.Burst, numbers.Rate)
		}
		if tier == "" && l.Aligned {
			problems.add(tier, "aligned", "aligned: a rate of %v has no window: leave it out", numbers.Rate)
		}
		return numbers.Rate.policy()
	}
	if numbers.Burst != nil && !traits.hasBurst {
		problems.add(tier, "burst", "burst %d: a %s has none, because all of its limit, %v, may come at once: leave it out, or use the "+
			"algorithm token-bucket", *numbers.Burst, name, numbers.Rate)
	} else if numbers.Burst != nil && (*numbers.Burst < 1 || *numbers.Burst > MaxBurst) {
		problems.add(tier, "burst", "burst %d: want 1 to %d", *numbers.Burst, uint64(MaxBurst))
	}
	if remedy := wholeRemedy(numbers.Rate.Rate); remedy != "" && traits.wholeRate && numbers.Rate != (Rate{}) {
		problems.add(tier, "rate", "rate %v: a %s wants a whole number of requests: %s", numbers.Rate, name, remedy)
	}
	if tier == "" && l.Aligned && !traits.canAlign {
		problems.add(tier, "aligned", "aligned: a %s has no windows of the clock: leave it out, or use the algorithm %s", name,
			Name(engine.AlgorithmFixedWindow))
	}
	return PolicyOf(l.Algorithm, numbers, l.Aligned)
}

// PolicyOf returns the policy of some numbers without checking them. If [Limit.Policies] has not accepted them, the
// caller must check the policy with [engine.Policy.Check] or [engine.Limiter.Quota]. For an algorithm without a rate,
// the policy is zero. PolicyOf does not allocate.
func PolicyOf(algorithm engine.Algorithm, numbers Numbers, aligned bool) engine.Policy {
	if numbers.Rate.IsFixed() {
		return numbers.Rate.policy()
	}
	tokens, period := uint64(numbers.Rate.Tokens), numbers.Rate.Period
	burst := uint64(max(1, math.Ceil(numbers.Rate.Tokens)))
	if numbers.Burst != nil {
		burst = *numbers.Burst
	}
	switch algorithm {
	case engine.AlgorithmTokenBucket:
		return engine.TokenBucket(numbers.Rate.Rate, burst)
	case engine.AlgorithmBatchRefill:
		return engine.BatchRefill(tokens, period, burst)
	case engine.AlgorithmFixedWindow:
		if aligned {
			return engine.FixedWindow(tokens, period).Aligned()
		}
		return engine.FixedWindow(tokens, period)
	case engine.AlgorithmSlidingWindow:
		return engine.SlidingWindow(tokens, period)
	case engine.AlgorithmSlidingLog:
		return engine.SlidingLog(tokens, period)
	case engine.AlgorithmConcurrency, engine.NoAlgorithm:
	}
	return engine.Policy{}
}

// tier returns the policy of a tier. Its numbers must be of the same kind as the limit's own: of requests in flight, or
// of a rate.
func (l *Limit) tier(problems *Errors, tier Tier) engine.Policy {
	inFlight := l.Concurrency != 0 && l.Rate == Rate{}
	switch {
	case inFlight && tier.Concurrency == 0:
		problems.add(tier.Name, "concurrency", "no concurrency, and the limit has no rate")
		return engine.Policy{}
	case !inFlight && tier.Concurrency != 0:
		problems.add(tier.Name, "concurrency", "a concurrency, and the limit has none")
		return engine.Policy{}
	case !inFlight && tier.Rate == Rate{} && tier.Burst == nil:
		problems.add(tier.Name, "", "neither rate nor burst")
		return engine.Policy{}
	case !inFlight && tier.Rate == Rate{} && l.Rate.IsFixed():
		problems.add(tier.Name, "", "no rate, and the limit's own is %v: write one", l.Rate)
		return engine.Policy{}
	case !inFlight && tier.Rate == Rate{}:
		tier.Rate = l.Rate
	}
	if tier.Burst == nil && !tier.Rate.IsFixed() && traitsOf(l.Algorithm).hasBurst && !inFlight {
		tier.Burst = l.Burst
	}
	traits, rate := traitsOf(l.Algorithm), l.Rate
	switch {
	case inFlight || tier.Rate.IsFixed() || rate.IsFixed() || rate == Rate{}:
	case traits.sameRate && tier.Rate != rate:
		problems.add(tier.Name, "rate", "all limits of a %s have one rate, %v: write a burst alone", Name(l.Algorithm), rate)
	case traits.samePeriod && (tier.Rate.Period != rate.Period || tier.Rate.calendar != rate.calendar):
		problems.add(tier.Name, "rate", "all limits of a %s have one period: write the rate as so many in the period of %v",
			Name(l.Algorithm), rate)
	}
	return l.policy(problems, tier.Name, tier.Numbers)
}

func (l *Limit) checkInFlight(problems *Errors, tier string, numbers Numbers) {
	const noRate = "it needs a rate, and the limit has none: leave it out"
	if numbers.Burst != nil {
		problems.add(tier, "burst", "burst: "+noRate)
	}
	if tier != "" {
		return
	}
	if l.Aligned {
		problems.add("", "aligned", "aligned: "+noRate)
	}
	if l.Refund {
		problems.add("", "refund_status", "refund_status: requests in flight are given back whatever their status: leave this out")
	}
}

func (l *Limit) checkPolicy(problems *Errors, policy engine.Policy) {
	if l.MaxWait != 0 && (l.MaxWait < MinWait || l.MaxWait > MaxWait) {
		problems.add("", "max_wait", "max_wait %v: want %v to %v", l.MaxWait, MinWait, MaxWait)
	}
	if a := policy.Algorithm(); l.MaxWait != 0 && a != engine.AlgorithmTokenBucket && a != engine.NoAlgorithm {
		problems.add("", "max_wait", "max_wait: requests can wait only for a token-bucket, and this is a %s: leave it out", Name(a))
	}
	if l.Spread {
		l.checkSpread(problems, policy)
	}
	if _, ok := l.Rate.Calendar(); l.Zone != "" && !ok {
		problems.add("", "zone", "zone: it needs a rate in a day, week or month of the calendar, such as 1000/month: leave it out")
	}
	if reason := l.whyNotStored(policy); l.Stored && reason != "" {
		problems.add("", "store", "%s", reason)
	}
}

func (l *Limit) checkSpread(problems *Errors, policy engine.Policy) {
	if a := policy.Algorithm(); a != engine.AlgorithmTokenBucket && a != engine.NoAlgorithm {
		problems.add("", "spread", "spread: only a token-bucket can be divided among processors, and this is a %s: leave spread out", Name(a))
		return
	}
	for _, conflict := range []struct {
		isSet       bool
		key, reason string
	}{
		{len(l.Tiers) > 0 && l.Quota == 0, "tiers", "one bucket has no tiers"},
		{l.Quota > 0, "quota", "one bucket has one limit"},
		{l.MaxWait > 0, "max_wait", "requests cannot wait for its tokens"},
		{l.Refund, "refund_status", "it gives back only tokens that have not come back by time, which soon is none"},
	} {
		if conflict.isSet {
			problems.add("", conflict.key, "%s: the limit has a spread, and %s: leave one of the two out", conflict.key, conflict.reason)
		}
	}
}

// whyNotStored returns the reason why the limit cannot be in a store, or "" if it can.
func (l *Limit) whyNotStored(policy engine.Policy) string {
	switch {
	case l.MaxWait > 0:
		return "requests cannot wait for tokens of a store (max_wait)"
	case l.Spread:
		return "a bucket that is divided among processors is kept on each machine (spread)"
	case policy.Algorithm() == engine.AlgorithmBatchRefill:
		return "a store does not keep batches (batch-refill)"
	case l.Overflow != engine.Evict:
		return fmt.Sprintf("a store has room for every key and no overflow (overflow: %v)", l.Overflow)
	}
	return ""
}

func (l *Limit) checkEngine(problems *Errors, policy engine.Policy, tiers []engine.Policy) {
	key := "rate"
	if policy.Algorithm() == engine.AlgorithmConcurrency {
		key = "concurrency"
	}
	if err := policy.Check(); err != nil {
		problems.add("", key, "%s", plain(err))
		return
	}
	for i, t := range tiers {
		if err := t.Check(); err != nil {
			problems.add(l.Tiers[i].Name, key, "%s", plain(err))
			return
		}
	}
	if l.Spread && !l.Rate.IsFixed() {
		s, err := engine.NewSpread(policy, engine.ClockPrecise())
		if err != nil {
			problems.add("", "spread", "spread: %s", plain(err))
			return
		}
		_ = s.Close() // always nil
	}
	base, counted := l.base(policy, tiers)
	if l.Quota > 0 || len(counted) > MaxTiers && !l.Stored {
		l.checkQuotas(problems, policy, base, tiers)
	} else if err := base.Check(counted[:min(len(counted), MaxTiers)]...); err != nil {
		problems.add("", "tiers", "%s", plain(err))
	}
}

// plain returns the text of an error of the engine, without the names of the package and of the option.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "engine: "), "Tiers: ")
}

func (l *Limit) checkCost(problems *Errors, policy engine.Policy, tiers []engine.Policy) {
	for i, p := range append([]engine.Policy{policy}, tiers...) {
		if l.Cost <= p.Limit() || p == engine.Blocked() {
			continue
		}
		tierText := ""
		if i > 0 {
			tierText = fmt.Sprintf(" of tier %q", l.Tiers[i-1].Name)
		}
		problems.add("", "cost", "cost %d is above the limit%s, %d: such a request could never pass", l.Cost, tierText, p.Limit())
		return
	}
}
