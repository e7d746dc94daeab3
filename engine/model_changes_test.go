package engine

import (
	"math"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/reference"
)

// A change of one tier draws the time of a token from modelPeriods, and the burst from modelBursts.
var (
	modelPeriods = []time.Duration{time.Second, 700 * time.Millisecond, 90 * time.Millisecond, 11 * time.Millisecond, 10 * time.Second}
	modelBursts  = []uint64{1, 3, 5, 10, 100, 1000}
)

// A change of all limits draws its numbers from these lists.
var (
	modelRates = []Policy{
		TokenBucket(PerSecond(1), 1), TokenBucket(Per(1, 10*time.Second), 1), TokenBucket(Per(1, 11*time.Millisecond), 1),
		TokenBucket(Per(3, 700*time.Millisecond), 1), TokenBucket(Per(16, 15001*time.Nanosecond), 1),
	}
	modelBatches = []Policy{
		BatchRefill(3, time.Second, 1), BatchRefill(1, 10*time.Second, 1), BatchRefill(40, 11*time.Millisecond, 1), BatchRefill(5, 700*time.Millisecond, 1),
	}
	modelWindows = []time.Duration{modelWindow, 3 * time.Second, 7 * time.Second, 25 * time.Second}
)

type change struct {
	was      map[*grants]grants
	from, to ticker
	highest  int64 // the highest limit so far, in ticks; only for a limiter of one rate
	one      bool
}

func (m *model) setsPolicy() {
	if m.byte()%4 > 0 {
		return
	}
	m.set(m.seen)
	if !m.kind.hasPrices() && m.byte()%2 == 0 {
		m.setsPace(m.pace())
		return
	}
	tier := int(m.byte()) % 3
	if m.kind.perNano > 1 { // tier 0 is not changed: the ticks depend on its numbers, or it has no numbers
		tier = 1 + tier%2
	}
	if len(m.kind.tiers) == 0 {
		tier = 0
	}
	longest := time.Hour
	if m.kind.policy.grant == grantsQuotas { // draws a longest time with which the ticks stay the same
		longest += time.Duration(m.byte()) * time.Minute
	}
	burst, period := pick(m, modelBursts), time.Duration(0)
	if m.kind.hasPrices() {
		period = pick(m, modelPeriods)
	}
	m.sets(tier, burst, period, longest)
}

func (m *model) pace() Policy {
	switch p := m.limiter.Policy(0); {
	case p.algorithm == AlgorithmTokenBucket:
		return pick(m, modelRates)
	case p.algorithm == AlgorithmBatchRefill:
		return pick(m, modelBatches)
	case p.algorithm == AlgorithmConcurrency, p.calendar != nil:
		return p
	default:
		p.window = pick(m, modelWindows)
		return p
	}
}

func (m *model) policiesNow() []Policy {
	all := make([]Policy, len(m.kind.tiers)+1)
	for i := range all {
		all[i] = m.limiter.Policy(i)
	}
	return all
}

// sets changes the numbers of one tier. Keys under other tiers must get the same answers as before.
func (m *model) sets(tier int, burst uint64, period, longest time.Duration) {
	policies := m.policiesNow()
	if m.kind.policy.grant == grantsQuotas {
		policies[0] = TokenBuckets(longest)
	}
	to := m.grants[tier].policy
	if to.limit = burst; m.kind.hasPrices() {
		to.rate = Per(1, period)
	} else if to.algorithm != AlgorithmTokenBucket {
		to.limit = 1 + to.limit%9
	}
	m.call += ": " + m.grants[tier].policy.String() + " -> " + to.String()
	policies[tier] = to
	m.becomes(policies)
}

func (m *model) setsPace(of Policy) {
	if m.isVague(of.window) {
		return
	}
	policies := m.policiesNow()
	for i, p := range policies {
		policies[i] = p.paced(of)
	}
	m.call += ": all as " + policies[0].String()
	m.becomes(policies)
}

// paced returns p with the rate, the batches and the windows of the other policy.
func (p Policy) paced(of Policy) Policy {
	if p.grant == grantsLimit {
		p.rate, p.refill, p.window = of.rate, of.refill, of.window
	}
	return p
}

func (m *model) isVague(length time.Duration) bool {
	return slices.ContainsFunc(m.all(), func(k *modelKey) bool {
		w, ok := k.account.(*window)
		return ok && w.isVague(m.seen, length)
	})
}

// isVague reports whether a change of the length has no defined result.
func (w *window) isVague(at int64, length time.Duration) bool {
	switch of := w.windowed.(type) {
	case *reference.SlidingLog:
		return of.Change(1, length).Count(at) > of.Count(at)
	case *reference.SlidingWindow:
		previous, current := of.Counts(at)
		return previous > 0 && current > 0 && of.Estimate(at) == current
	}
	return false
}

func (m *model) becomes(to []Policy) {
	before, c := m.tells(), change{was: map[*grants]grants{}, from: m.kind.ticker, to: m.kind.ticker}
	if !m.kind.hasPrices() {
		c.to, c.one = tickerOf(to[0]), to[0].paced(m.grants[0].policy) != to[0]
		m.stretched, m.longest = m.stretched || c.one, max(m.longest, to[0].window, m.grants[0].policy.window)
		c.highest = int64(m.highest()) * m.grants[0].token
	}
	require.NoError(m.t, m.limiter.SetPolicy(to[0], to[1:]...), m.call)
	m.policies++
	m.kind.ticker = c.to
	for i, p := range to {
		m.regrants(&c, m.grants[i], p)
	}
	for _, q := range m.grants[len(to):] {
		if c.one {
			m.regrants(&c, q, q.policy.paced(to[0]))
			m.requotes(q)
		}
	}
	m.requireChange(&c, before)
	for _, k := range m.all() {
		m.converts(&c, k)
	}
	for _, k := range m.keys {
		m.look(k)
	}
}

// regrants gives the grants q the numbers of the policy p, and records the previous numbers in c.
func (m *model) regrants(c *change, q *grants, p Policy) {
	if p == q.policy || p.grant != grantsLimit {
		return
	}
	c.was[q] = *q
	q.policy, q.tokens, q.token, q.ticks = p, p.limit, m.kind.tokenOf(p), m.kind.ticker
	q.ever = max(q.ever, q.tokens)
}

// requotes checks that a change of the rate has made a quota void, and makes the quota again.
func (m *model) requotes(q *grants) {
	if _, isBucket := m.keys[0].account.(*bucket); !isBucket || q.policy.grant != grantsLimit {
		return
	}
	require.Equal(m.t, Decision{RetryAfter: Never}, m.limiter.TakeKey(q.key(m.keys[0].key), 1), "%s: a quota of before", m.call)
	quota, err := m.limiter.Quota(q.policy)
	require.NoError(m.t, err, m.call)
	q.key, q.made = func(k Key) Key { return k.With(quota) }, q.made+1
}

func (m *model) highest() (tokens uint64) {
	for _, q := range m.grants {
		tokens = max(tokens, q.ever)
	}
	return tokens
}

// isTier reports whether the grants belong to the limiter or one of its tiers, and not to a quota.
func (m *model) isTier(q *grants) bool { return slices.Index(m.grants, q) <= len(m.kind.tiers) }

// converts changes the debt of a key on paper, as a change of the policy does in the limiter.
func (m *model) converts(c *change, k *modelKey) {
	at := m.at(m.seen) // a replacement in a shared table has moved the watermark
	latest, promised := max(at, m.leading, m.promised), max(at, m.promised)
	switch a := k.account.(type) {
	case *window:
		if c.one {
			a.windowed = a.changed(at, m.grants[0].policy.window, m.limits(latest))
		}
	case *bucket:
		if was, changed := c.was[k.last]; changed && a.prices != nil {
			a.reprices(at, latest, was.token, k.last.token)
			k.notes(k.last, event{at: at}) // the debt comes back by the new numbers from now on
		} else if was, changed := c.was[m.grants[0]]; changed && a.prices == nil {
			highest := c.highest
			if k.last != nil && !m.isTier(k.last) { // the record does not say which quota the key used
				highest = mostTicks
			}
			a.change(at, latest, promised, was.token, m.grants[0].token, c.to, highest)
		}
		a.ticker = c.to
	}
	if c.one {
		own := *m.grants[0]
		own.tokens = 0 // no request was made under these numbers
		k.story = append(k.story, &event{at: at, q: &own})
	}
	if _, isWindow := k.account.(*window); isWindow && c.one {
		lowest := *m.grants[0]
		lowest.tokens = m.limits(latest).Lowest // the key has at least this limit
		k.story = append(k.story, &event{at: at, q: &lowest})
	}
}

// limits returns the numbers that a change of the length uses.
func (m *model) limits(latest int64) reference.Limits {
	known := reference.Limits{Latest: latest, Lowest: math.MaxUint64, Longest: int64(m.longest)}
	if len(m.kind.quotas) > 0 {
		known.Lowest = 1
	}
	for _, q := range m.grants {
		if m.isTier(q) && q.ever > 0 {
			known.Lowest = min(known.Lowest, q.tokens)
		}
	}
	return known
}

// changed returns the window after a change of its length.
func (w *window) changed(at int64, length time.Duration, limits reference.Limits) windowed {
	switch of := w.windowed.(type) {
	case *reference.FixedWindow:
		return of.Change(at, 1, length, limits)
	case *reference.SlidingWindow:
		return of.Change(at, 1, length, limits)
	case *reference.SlidingLog:
		log := of.Change(1, length)
		log.Keep(time.Duration(limits.Longest), modelLogSize)
		return log
	}
	return w.windowed
}
