package engine

import (
	"flag"
	"fmt"
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

// requireFits compares what a key was granted, at the times for which it was granted, with its limits. Over any time,
// what was taken and not given back is at most the largest burst and what came back at the highest rate.
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

// requireFitsIn is requireFits for the time between two events, in tokens. The sum is at most the largest burst and the
// highest rate of the limits in that time.
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

// requireFitsWindow checks what was granted in less than a window: at most the limit by a log, and at most twice the
// limit less one by windows that begin with a request. (Charges do not count as granted.)
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

// setsPolicy draws other numbers for one tier.
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
	longest := time.Hour
	if m.kind.policy.grant == grantsQuotas { // a longest time with the same ticks
		longest += time.Duration(m.byte()) * time.Minute
	}
	burst, period := pick(m, modelBursts), time.Duration(0)
	if m.kind.hasPrices() {
		period = pick(m, modelPeriods)
	}
	m.sets(tier, burst, period, longest)
}

// sets changes the numbers of one tier. The tokens that each key has taken still count, by the tier of its last take.
// So the answers for keys under other tiers stay the same.
func (m *model) sets(tier int, burst uint64, period, longest time.Duration) {
	policies := make([]Policy, len(m.kind.tiers)+1)
	for i := range policies {
		policies[i] = m.limiter.Policy(i)
	}
	if m.kind.policy.grant == grantsQuotas {
		policies[0] = TokenBuckets(longest)
	}
	q := m.grants[tier]
	to, was := q.policy, *q
	token := q.token
	if to.limit = burst; m.kind.hasPrices() {
		to.rate = Per(1, period)
		token = int64(to.rate.Period) * m.kind.perNano
	} else if to.algorithm != AlgorithmTokenBucket {
		to.limit = 1 + to.limit%9
	}
	policies[tier] = to
	before := m.tells()
	require.NoError(m.t, m.limiter.SetPolicy(policies[0], policies[1:]...), m.call)
	m.call += ": " + was.policy.String() + " -> " + to.String()
	m.policies++
	q.policy, q.tokens, q.token, q.ever = to, to.limit, token, append(q.ever, version{to.limit, token})
	m.requireChange(q, before)
	at := m.at(m.seen) // a replacement in a shared table has moved the watermark
	for _, k := range m.keys {
		if b, ok := k.account.(*bucket); ok && k.last == q {
			b.change(at, max(at, m.leading, m.promised), max(at, m.promised), &was, q)
			if b.prices != nil {
				k.notes(q, event{at: at}) // what it owes comes back by these numbers from now on
			}
		}
		m.look(k)
	}
}

// told is what a limiter says of a key: what it owes, and of requests for one token and for all under each grant.
type told struct {
	owed uint64
	of   [][2]Decision
}

func (m *model) tells() (all []told) {
	for _, k := range m.keys {
		says := told{of: make([][2]Decision, len(m.grants))}
		says.owed, _ = m.limiter.Owed(k.key)
		for i, g := range m.grants {
			says.of[i] = [2]Decision{m.limiter.Peek(g.key(k.key), 1), m.limiter.Peek(g.key(k.key), max(g.tokens, 1))}
		}
		all = append(all, says)
	}
	return all
}

// requireChange compares the effect of a change of one tier's numbers on every key with the properties of
// docs/decisions/0031. (a) Keys under others are not affected. (d) A raised limit and a faster rate are active at once.
// (c) A key that has taken no more than the limit waits no longer than one that has taken all of it. A key that has
// taken more waits until the excess is back at the new rate. If there were grants ahead of the clock, or reservations,
// debt may come back at the previous rate until those are due. requireFits checks (b).
func (m *model) requireChange(q *grants, before []told) {
	ahead := max(m.leading, m.promised, m.seen) - m.seen
	for i, says := range m.tells() {
		k := m.keys[i]
		for j, g := range m.grants {
			was, is := before[i].of[j], says.of[j]
			what := fmt.Sprintf("key %d under %s", i, g.name)
			switch {
			case g == q:
				m.requireTokens(k, q, before[i].owed, ahead, is, what)
			case k.last != q || !m.kind.hasPrices():
				for n := range was {
					m.requireSame(was[n], is[n], what)
				}
			case ahead == 0: // it keeps tokens, rounded up, and they come back at another rate
				require.LessOrEqual(m.t, is[0].Remaining, was[0].Remaining, "(b) %s: %s", m.call, what)
				require.LessOrEqual(m.t, was[0].Remaining-is[0].Remaining, uint64(1), "(c) %s: %s", m.call, what)
			}
		}
	}
}

// requireSame is (a). A change in a shared table moves the watermark by a nanosecond, to which waits are rounded up.
func (m *model) requireSame(was, is Decision, what string) {
	late := time.Duration(m.at(m.seen) - m.seen)
	if is.RetryAfter-was.RetryAfter <= late && is.ResetAfter-was.ResetAfter <= late {
		was.RetryAfter, was.ResetAfter = max(was.RetryAfter, is.RetryAfter), max(was.ResetAfter, is.ResetAfter)
	}
	if was != is {
		require.Equal(m.t, was, is, "(a) %s: %s", m.call, what)
	}
}

// requireTokens compares the answer for a key with a debt, under a tier, with (c) and (d), if some tokens were granted
// for a later time.
func (m *model) requireTokens(k *modelKey, q *grants, owed uint64, ahead int64, is [2]Decision, what string) {
	if q.tokens == 0 {
		return
	}
	left, most, wait := q.tokens-min(owed, q.tokens), uint64(0), int64(modelWindow)*2
	if b, ok := k.account.(*bucket); ok {
		if owed+q.tokens > uint64(mostTicks/2/q.token) {
			return // there is no room for that
		}
		if ahead > 0 && owed > 0 {
			most = uint64(b.ticks(m.seen+ahead)-b.ticks(m.seen))/uint64(q.token) + 1
		}
		late := ahead + m.at(m.seen) - m.seen
		wait = late + b.wait(m.seen, max(int64(owed)+1-int64(q.tokens), 0)*q.token)
		require.LessOrEqual(m.t, int64(is[1].RetryAfter), late+b.wait(m.seen, int64(owed)*q.token), "(c) %s: %s, for all", m.call, what)
	}
	require.LessOrEqual(m.t, int64(is[0].RetryAfter), wait, "(c) %s: %s", m.call, what)
	require.GreaterOrEqual(m.t, is[0].Remaining+most, left, "(d) %s: %s", m.call, what)
	if ahead == 0 {
		require.Equal(m.t, left, is[0].Remaining, "(b) %s: %s", m.call, what)
	}
}
