package engine

import (
	"math"
	"slices"

	"github.com/stretchr/testify/require"
)

// modelSlots is the capacity of the smallest table.
const modelSlots = 32

type full struct {
	others    []*modelKey
	victims   []*modelKey // one of these keys was evicted; all of them owed the same
	when      int64       // the time of that eviction
	evictions uint64
	forgiven  uint64 // tokens

	overflow   OverflowPolicy
	noRoom     uint64 // requests, with Refuse
	unrecorded uint64 // requests, with Admit
}

// fills fills the table with other keys.
func (m *model) fills(kind modelKind, overflow OverflowPolicy) {
	m.full = &full{overflow: overflow}
	for i := range modelSlots - 1 {
		m.others = append(m.others, m.newKey(kind, uint64(100+i)))
	}
	m.refills()
}

func (m *model) refills() {
	if m.full == nil {
		return
	}
	q := m.grants[0]
	for _, g := range m.grants {
		if q.tokens == 0 {
			q = g
		}
	}
	m.set(m.seen)
	for i, k := range m.others {
		m.breaksTies(k, m.at(m.now))
		if n := max(q.tokens*uint64(i%2), 1); k.idle(m.at(m.now)) {
			k.under(q)
			want, _ := m.take(k, q, n, m.now, m.now)
			m.require(k, want, m.limiter.TakeKey(q.key(k.key), n), "another of a full table, %d under %s", n, q.name)
			m.settlesEviction()
		}
	}
}

func (m *model) all() []*modelKey {
	if m.full == nil {
		return m.keys[:]
	}
	return append(m.keys[:len(m.keys):len(m.keys)], m.others...)
}

// owes returns the debt of a key in the unit in which evictions compare debts.
func (m *model) owes(k *modelKey, at int64) int64 {
	if b, ok := k.account.(*bucket); ok {
		return b.owed(at)
	}
	const many = 1 << 40
	w := k.account.(*window)
	w.Under(many)
	owes := many - w.Remaining(at)
	if w.q != nil {
		w.Under(w.q.tokens)
	}
	return int64(owes)
}

// least returns the keys that owe the least in a full table, except the given key.
func (m *model) least(of *modelKey, at int64) (least []*modelKey, owes int64) {
	if m.full == nil {
		return nil, 0
	}
	busy := 0
	owes = math.MaxInt64
	for _, k := range m.all() {
		if k == of || k.idle(at) {
			continue
		}
		busy++
		switch is := m.owes(k, at); {
		case is < owes:
			least, owes = []*modelKey{k}, is
		case is == owes:
			least = append(least, k)
		}
	}
	if require.LessOrEqual(m.t, busy, modelSlots, m.call); busy < modelSlots {
		return nil, 0
	}
	return least, owes
}

// breaksTies forgets a key of the program that an eviction might choose. It is not defined which of several equal debts
// is evicted.
func (m *model) breaksTies(of *modelKey, at int64) {
	least, _ := m.least(of, at) // keys of the program come first
	if len(least) > 1 && m.overflow == Evict && of.idle(at) && slices.Contains(m.keys[:], least[0]) {
		m.forget(least[0])
	}
}

// makesRoom finds room, on paper, for a key that is charged now, and may evict another key.
func (m *model) makesRoom(of *modelKey, when int64) (wait int64) {
	at := min(when, m.at(m.now))
	if m.full == nil || !of.idle(at) {
		return 0
	}
	least, owes := m.least(of, at)
	switch {
	case len(least) == 0:
		return 0
	case m.overflow == Refuse:
		m.noRoom++
	case m.overflow == Admit:
		m.unrecorded++
	}
	if m.overflow != Evict {
		of.clear() // it has no record, even if its window is not over
		wait = math.MaxInt64
		for _, k := range m.all() {
			if k != of && !k.idle(at) {
				wait = min(wait, k.untilIdle(at))
			}
		}
		return max(at+wait-when, 1)
	}
	m.evictions++
	m.forgiven += m.inTokens(owes)
	if m.victims, m.when = least, at; len(least) == 1 {
		m.evicted(least[0])
	}
	return 0
}

func (k *modelKey) untilIdle(at int64) int64 {
	busy, idle := int64(-1), int64(1)
	for !k.idle(at + idle) {
		busy, idle = idle, 2*idle
	}
	for busy+1 < idle {
		if half := busy + (idle-busy)/2; k.idle(at + half) {
			idle = half
		} else {
			busy = half
		}
	}
	return idle
}

func (m *model) inTokens(owes int64) uint64 {
	token := m.grants[0].token
	if m.kind.policy.grant == grantsQuotas { // the limiter's own rate is a token per second
		token = m.kind.perNano * 1e9
	}
	return uint64((owes + token - 1) / token)
}

func (m *model) evicted(k *modelKey) {
	m.requireFits(k)
	k.clear()
	k.story, k.vague, k.resets = nil, false, k.resets+1
}

// settlesEviction requires that the limiter has evicted one of the keys that owed the least.
func (m *model) settlesEviction() {
	if m.full == nil || len(m.victims) == 0 {
		return
	}
	m.settlesVictims(1)
	for _, k := range m.keys {
		m.look(k)
	}
}

// settlesVictims finds out which keys were evicted, and reports whether there were any.
func (m *model) settlesVictims(most int) bool {
	if m.full == nil || len(m.victims) == 0 {
		return false
	}
	var gone []*modelKey
	now := m.now
	m.set(min(now, m.when)) // a key that a late call evicted may be idle by now
	for _, k := range m.victims {
		if owed, _ := m.limiter.Owed(k.key); owed == 0 {
			gone = append(gone, k)
		}
	}
	m.set(now)
	require.NotEmpty(m.t, gone, "%s: one of %d is evicted", m.call, len(m.victims))
	require.LessOrEqual(m.t, len(gone), most, "%s: one of %d is evicted", m.call, len(m.victims))
	m.evicted(gone[0])
	m.victims = nil
	return true
}

// breaksTiesOf is breaksTies for two keys of one call. It returns false if the take from the first key may evict the
// second key.
func (m *model) breaksTiesOf(first, second *modelKey) bool {
	if m.full == nil || m.overflow != Evict {
		return true
	}
	m.breaksTies(first, m.seen)
	m.breaksTies(second, m.seen)
	least, _ := m.least(first, m.at(m.seen))
	return !first.idle(m.at(m.seen)) || !slices.Contains(least, second)
}

// requireStats compares the counts of evictions and of requests without room with those on paper.
func (m *model) requireStats() {
	stats, want := m.limiter.Stats(), full{}
	if m.full != nil {
		want = *m.full
	}
	require.Equal(m.t, want.evictions, stats.Evictions, "%s: evictions", m.call)
	require.Equal(m.t, want.forgiven, stats.Forgiven, "%s: tokens forgiven", m.call)
	require.Equal(m.t, want.noRoom, stats.NoRoom, "%s: without room", m.call)
	require.Equal(m.t, want.unrecorded, stats.Unrecorded, "%s: without a record", m.call)
}

// requireSwept compares the sweep's count of keys that are not idle with the count on paper.
func (m *model) requireSwept() {
	busy, keys := uint64(0), m.limiter.Stats().Keys
	for _, k := range m.all() {
		if !k.idle(m.at(m.now)) {
			busy++
		}
	}
	if m.kind.policy.algorithm == AlgorithmSlidingLog {
		require.GreaterOrEqual(m.t, keys, busy, "%s: keys", m.call)
	} else {
		require.Equal(m.t, busy, keys, "%s: keys", m.call)
	}
}
