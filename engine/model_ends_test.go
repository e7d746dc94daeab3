package engine

import (
	"math"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/shard"
)

func (m *model) ends() {
	if len(m.open) == 0 {
		return
	}
	i := int(m.byte()) % len(m.open)
	tk, n := m.open[i], uint64(m.byte()%12)
	if !m.mayEnd(tk) {
		return
	}
	again := m.byte()%4 == 0 // the take stays open, so that a later call gives it back again
	switch {
	case tk.receipt != nil:
		m.givesBack(tk, n)
		tk.receipt.Refund(n)
		again = again || tk.of.n > 0
	case tk.entry != nil:
		m.givesBack(tk, math.MaxUint64)
		tk.entry.Release()
	case tk.hold != nil:
		m.settles(tk, n)
	case n%2 == 0:
		m.givesBack(tk, math.MaxUint64)
		tk.of.n = 0
		tk.ahead.Release()
	default:
		tk.receipt = &tk.ahead.Receipt
		again = true
	}
	if !again {
		m.open = slices.Delete(m.open, i, i+1)
	}
	m.look(tk.modelKey)
}

// settles settles a hold for its actual cost, or releases it.
func (m *model) settles(tk *taken, actual uint64) {
	settled, was := tk.hold.ended != 0, tk.of.n
	switch {
	case settled:
		require.Zero(m.t, tk.hold.Settle(actual), "%s: twice", m.call)
		require.False(m.t, tk.hold.Release(), "%s: twice", m.call)
	case actual == 0 && m.byte()%2 == 0:
		m.givesBack(tk, math.MaxUint64)
		require.True(m.t, tk.hold.Release(), m.call)
	case actual < was:
		m.givesBack(tk, was-actual)
		require.Zero(m.t, tk.hold.Settle(actual), m.call)
	default:
		lost := uint64(0)
		if actual > was && !(tk.under.all && tk.e == nil) {
			_, lost = m.chargeOnPaper(tk.modelKey, tk.quota(), actual-was)
		}
		require.Equal(m.t, lost, tk.hold.Settle(actual), "%s: %d for %d under %s", m.call, actual, was, tk.under.name)
	}
}

// quota returns the grants under which a hold is settled.
func (tk *taken) quota() *grants {
	if tk.made != tk.under.made {
		return &grants{}
	}
	return tk.under
}

// isVoid reports whether a take cannot be given back any more.
func (m *model) isVoid(tk *taken) bool {
	switch m.kind.policy.algorithm {
	case AlgorithmConcurrency:
		return tk.resets != tk.modelKey.resets
	case AlgorithmSlidingLog:
		return tk.ends != m.limiter.table.Ends(m.limiter.table.Find(tk.key.hash))
	}
	return tk.policy != m.policies || tk.ends != m.limiter.table.Ends(m.limiter.table.Find(tk.key.hash))
}

func (m *model) givesBack(tk *taken, n uint64) {
	n = min(n, tk.of.n)
	if tk.e == nil || n == 0 {
		return
	}
	if !m.isVoid(tk) {
		m.forgetIdle(tk.modelKey)
		tk.modelKey.under(tk.under)
		tk.giveBack(m.seen, &tk.of, n, m.near(m.seen))
		tk.modelKey.given = m.seen
		tk.e.n -= n
	}
	tk.of.n -= n
}

// mayEnd reports whether it is defined what a take gives back now.
func (m *model) mayEnd(tk *taken) bool {
	twice := m.kind.policy.algorithm == AlgorithmSlidingLog && tk.modelKey.given == m.seen
	return !twice && !m.isAhead(tk.modelKey)
}

// isAhead reports whether a window or a log may have granted a request ahead of the clock.
func (m *model) isAhead(k *modelKey) bool {
	_, counts := k.account.(*window)
	return counts && m.leading > m.seen
}

// forgetIdle makes the limiter forget a record that owes nothing, because late calls could observe it.
func (m *model) forgetIdle(k *modelKey) {
	if k.idle(m.seen) {
		now := m.now
		m.set(m.seen)
		m.limiter.Sweep()
		m.set(now)
	}
}

func (m *model) refunds() {
	k, q, key := m.key()
	n := m.tokens(q)
	if m.isAhead(k) || m.kind.policy.algorithm == AlgorithmConcurrency {
		return
	}
	m.requireFits(k)
	m.forgetIdle(k)
	if n > 0 && q.tokens > 0 && !k.idle(m.seen) {
		k.refund(m.seen, n, m.near(m.seen))
		k.vague = true
	}
	m.limiter.Refund(key, n)
	m.look(k)
}

// forgetEmpty forgets a sliding window counter whose tokens were all given back.
func (m *model) forgetEmpty(k *modelKey) {
	if m.kind.policy.algorithm == AlgorithmSlidingWindow && m.stretched && k.idle(m.seen) {
		m.forgetIdle(k)
		k.clear()
	}
}

// look requires that the key has the same tokens left in the limiter and on paper.
func (m *model) look(k *modelKey) {
	m.forgetEmpty(k)
	for _, q := range m.grants {
		at := m.at(m.now)
		m.require(k, m.answer(k, q, 1, at, at-m.now), m.limiter.Peek(q.key(k.key), 1), "afterwards, under %s", q.name)
	}
}

func (m *model) takesAll() {
	m.set(m.seen) // on paper, tokens are given back after the limiter has taken them
	first := int(m.byte())
	var requests [2]Request
	var tks [2]*taken
	for i := range requests {
		k, q := m.keys[(first+i)%len(m.keys)], pick(m, m.grants)
		n := m.tokens(q)
		requests[i] = Request{Limiter: m.limiter, Key: q.key(k.key), N: n}
		tks[i] = &taken{modelKey: k, under: q}
		m.makes(m.verb, q)
	}
	n := func(i int) uint64 { return requests[i].N }
	if !m.breaksTiesOf(tks[0].modelKey, tks[1].modelKey) {
		return
	}
	if m.byte()%2 == 0 {
		m.floor = m.limiter.table.Watermark()
		got, err := all(requests[:]...)
		require.NoError(m.t, err)
		want, allowed := m.both(tks[:], n)
		require.Equal(m.t, ofBoth(allowed, want[0].Decision, want[1].Decision), got, "%s: %d under %s and %d under %s",
			m.call, requests[0].N, tks[0].under.name, requests[1].N, tks[1].under.name)
		m.drop(tks[:])
		return
	}
	answers := make([]Answer, 2)
	m.floor = m.limiter.table.Watermark()
	got, err := TakeAll(requests[:], answers)
	require.NoError(m.t, err)
	want, allowed := m.both(tks[:], n)
	require.Equal(m.t, allowed, got, m.call)
	for i, tk := range tks {
		m.require(tk.modelKey, want[i].Decision, answers[i].Decision, "answer %d, %d under %s", i, requests[i].N, tk.under.name)
		tk.receipt = &answers[i].Receipt
	}
}

// both makes a take from two keys on paper, all or nothing, after the limiter has made the call.
func (m *model) both(tks []*taken, n func(i int) uint64) (want [2]Answer, allowed bool) {
	ended := false
	for i, tk := range tks {
		var e *event
		want[i].Decision, e = m.take(tk.modelKey, tk.under, n(i), m.now, m.now)
		ended = m.settlesVictims(len(tks) - i)
		if allowed = want[i].Decision.Allowed; !allowed {
			break
		}
		if m.opens(tk.modelKey, tk.under, e, tk); tk.hold != nil {
			tk.unrecorded(n(i))
		}
	}
	if m.floor = 0; ended && tks[1].ends != (shard.Ends{}) || ended && want[0].Decision.Allowed && !allowed {
		tks[0].ends = shard.Ends{} // the first take got its receipt before the second evicted a key
	}
	if !allowed {
		m.undo(tks, &want, n)
	}
	return want, allowed
}

// ofBoth combines the decisions of two limits into one decision.
func ofBoth(allowed bool, one, two Decision) Decision {
	second := two.RetryAfter > one.RetryAfter
	if allowed {
		second = two.Remaining < one.Remaining || two.Remaining == one.Remaining && two.ResetAfter > one.ResetAfter
	}
	if second {
		one = two
	}
	one.Allowed = allowed
	return one
}

func (m *model) drop(tks []*taken) {
	m.open = slices.DeleteFunc(m.open, func(tk *taken) bool { return slices.Contains(tks, tk) })
}

// undo gives back, on paper, the takes before the limit that refuses.
func (m *model) undo(tks []*taken, want *[2]Answer, n func(i int) uint64) {
	refused := 0
	for want[refused].Decision.Allowed {
		m.givesBack(tks[refused], math.MaxUint64)
		m.forgetEmpty(tks[refused].modelKey)
		refused++
	}
	m.open = m.open[:len(m.open)-refused]
	for i, tk := range tks {
		if at := m.at(m.now); i != refused {
			want[i].Decision = m.answer(tk.modelKey, tk.under, n(i), at, at-m.now)
		}
	}
}

// holdsAll holds tokens of two keys, all or nothing, and may settle both holds at once.
func (m *model) holdsAll() {
	m.set(m.seen)
	first := int(m.byte())
	requests, holds, tks := make([]Request, 2), make([]Receipt, 2), make([]*taken, 2)
	for i := range requests {
		k, q := m.keys[(first+i)%len(m.keys)], pick(m, m.grants)
		requests[i] = Request{Limiter: m.limiter, Key: q.key(k.key), N: m.tokens(q)}
		tks[i] = &taken{modelKey: k, under: q, hold: &holds[i]}
		m.makes(m.verb, q)
	}
	if !m.breaksTiesOf(tks[0].modelKey, tks[1].modelKey) {
		return
	}
	m.floor = m.limiter.table.Watermark()
	got, err := holdAll(requests, holds)
	require.NoError(m.t, err)
	want, allowed := m.both(tks, func(i int) uint64 { return tks[i].under.estimate(requests[i].N) })
	d := ofBoth(allowed, want[0].Decision, want[1].Decision)
	if other := want[1].Decision; !allowed && want[0].Decision.RetryAfter == other.RetryAfter && !other.Allowed && want[0].Decision.Allowed {
		d = other // both waits are equal, so it is the decision that refused
	}
	require.Equal(m.t, d, got, "%s: %d under %s and %d under %s", m.call, requests[0].N, tks[0].under.name, requests[1].N, tks[1].under.name)
	evicts := m.full != nil && m.overflow == Evict // two charges may evict two keys; on paper both come first
	if actual := []uint64{uint64(m.byte() % 16), uint64(m.byte() % 16)}; allowed && !evicts && m.byte()%2 == 0 && m.mayEnd(tks[0]) && m.mayEnd(tks[1]) {
		m.settlesAll(tks, holds, actual)
	}
}

func (m *model) settlesAll(tks []*taken, holds []Receipt, actual []uint64) {
	sum := uint64(0)
	for i, tk := range tks {
		switch was := tk.of.n; {
		case actual[i] < was:
			m.givesBack(tk, was-actual[i])
		case actual[i] > was && !(tk.under.all && tk.e == nil):
			_, lost := m.chargeOnPaper(tk.modelKey, tk.under, actual[i]-was)
			sum += lost
		}
	}
	require.Equal(m.t, sum, settleAll(holds, actual...), "%s: both together", m.call)
	for _, tk := range tks {
		m.look(tk.modelKey)
	}
}
