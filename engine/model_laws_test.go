package engine

import (
	"flag"
	"time"

	"github.com/stretchr/testify/require"
)

// unsettled are steps that the engine is known to answer wrongly. Programs make them with -unsettled only.
var unsettled = map[string]bool{
	"a window whose first request is given back": true,
}

var withUnsettled = flag.Bool("unsettled", false, "programs of the model make also the steps that are known to be answered wrongly")

// may reports whether programs make a step.
func may(step string) bool { return !unsettled[step] || *withUnsettled }

// requireFits holds what a key was given, by the times at which it went, against its limits: what was taken in any
// time and not given back is no more than the largest burst and what came back by itself at the highest rate.
func (m *model) requireFits(k *modelKey) {
	b, isBucket := k.account.(*bucket)
	if w, ok := k.account.(*window); ok && !k.vague {
		m.requireFitsWindow(k, w)
	}
	if !isBucket || k.vague {
		return
	}
	for i, last := range k.story {
		if last.charged || last.n == 0 {
			continue
		}
		for _, first := range k.story {
			begin := first.at
			if b.perNano != 1 {
				begin-- // a refill at that moment counts, and the part of a nanosecond that a reservation waits more
			}
			if last.at >= first.at {
				m.requireFitsIn(k, first, last, i, b.ticks(last.at)-b.ticks(begin))
			}
		}
	}
}

// requireFitsIn is requireFits from one event to another, the i-th: in tokens, under whatever limits they were taken.
// It is no more than the largest burst and the highest rate of those in that time, as they were then.
func (m *model) requireFitsIn(k *modelKey, first, last *event, i int, passed int64) {
	tokens, from, to := uint64(0), i, i
	for j, e := range k.story {
		if e.at >= first.at && e.at <= last.at && (!e.charged || j <= i) {
			tokens, from, to = tokens+e.n, min(from, j), max(to, j)
		}
	}
	burst, token := last.q.tokens, last.q.token
	for _, e := range k.story[from : to+1] { // of those who go later, what it was asked under until then
		token = min(token, e.q.token)
		if !e.charged {
			burst = max(burst, e.q.tokens)
		}
	}
	require.LessOrEqual(m.t, tokens, burst+uint64(passed/token), "%s: I1: %d tokens in %d ticks", m.call, tokens, passed)
}

// requireFitsWindow: what was granted in less than a window is no more than the limit, by a log; and than twice the
// limit less one, by windows that begin with a request. (What a record was charged unasked is not granted.)
func (m *model) requireFitsWindow(k *modelKey, _ *window) {
	p := m.kind.policy
	times := uint64(0)
	switch {
	case p.algorithm == AlgorithmSlidingLog:
		times = 1
	case p.algorithm == AlgorithmFixedWindow && !p.aligned && may("a window whose first request is given back"):
		times = 2
	}
	for _, last := range k.story {
		sum, limit := uint64(0), uint64(0)
		for _, e := range k.story {
			if passed := last.at - e.at; passed >= 0 && passed < int64(modelWindow) && !e.charged {
				sum, limit = sum+e.n, max(limit, e.q.tokens)
			}
		}
		if times > 0 {
			require.LessOrEqual(m.t, sum, times*limit-(times-1), "%s: I1: in less than a window", m.call)
		}
	}
}

// modelPeriods are the times that a token takes to come back, and modelBursts the bursts, that a policy changes to.
var (
	modelPeriods = []time.Duration{time.Second, 700 * time.Millisecond, 90 * time.Millisecond, 11 * time.Millisecond, 10 * time.Second}
	modelBursts  = []uint64{1, 3, 5, 10, 100, 1000}
)

// setsPolicy changes the numbers of one tier. Each key keeps the tokens that it has taken, by the tier of its last
// take. So keys under other tiers are told what they were told before.
func (m *model) setsPolicy() {
	if m.kind.policy.grant == grantsLimit && len(m.kind.tiers) == 1 || m.byte()%4 > 0 {
		return
	}
	m.set(m.seen)
	tier := int(m.byte()) % 3
	if m.kind.perNano > 1 { // the first tier's numbers are those of the ticks, or there are none
		tier = 1 + tier%2
	}
	if len(m.kind.tiers) == 0 {
		tier = 0
	}
	policies := make([]Policy, len(m.kind.tiers)+1)
	for i := range policies {
		policies[i] = m.limiter.Policy(i)
	}
	if m.kind.policy.grant == grantsQuotas { // a longest time with the same ticks
		policies[0] = TokenBuckets(time.Hour + time.Duration(m.byte())*time.Minute)
	}
	q := m.grants[tier]
	to, was := q.policy, *q
	if to.limit = pick(m, modelBursts); m.kind.hasPrices() {
		to.rate = Per(1, pick(m, modelPeriods))
		q.token = int64(to.rate.Period) * m.kind.perNano
	} else if to.algorithm != AlgorithmTokenBucket {
		to.limit = 1 + to.limit%9
	}
	policies[tier] = to
	require.NoError(m.t, m.limiter.SetPolicy(policies[0], policies[1:]...), m.call)
	m.call += ": " + was.policy.String() + " -> " + to.String()
	m.policies++
	q.policy, q.tokens, q.ever = to, to.limit, append(q.ever, version{to.limit, q.token})
	for _, k := range m.keys {
		if b, ok := k.account.(*bucket); ok && k.last == q {
			b.change(m.seen, max(m.seen, m.leading, m.promised), max(m.seen, m.promised), &was, q)
			if b.prices != nil {
				k.notes(q, event{at: m.seen}) // what it owes comes back by these numbers from now on
			}
		}
		m.look(k)
	}
}
