package engine

import (
	"math"
	"time"

	"github.com/stretchr/testify/require"
)

func (m *model) set(nanos int64) {
	m.now, m.seen = nanos, max(m.seen, nanos)
	m.limiter.clock.nanos()
}

// passes moves the clock on, sometimes to the nanosecond at which a bucket is full or a window ends.
func (m *model) passes() {
	k, wait := pick(m, m.keys[:]), int64(m.byte())
	switch m.byte() % 8 {
	case 1, 2:
		wait *= int64(time.Second) / 16
	case 3:
		wait *= int64(time.Second)
	case 4:
		wait = max(k.reset(m.seen)+wait%3-1, 0)
	case 5:
		wait = max(k.reset(m.seen)/2, 0)
	case 6:
		wait *= 3_333_333
	case 7:
		wait = m.edge() - m.seen + wait%3 - 1
	}
	m.set(m.seen + wait)
}

func (m *model) edge() int64 {
	length := int64(modelWindow)
	if _, ok := m.keys[0].account.(*window); ok {
		if m.kind.policy.calendar != nil {
			return months{}.End(m.seen)
		}
		length = int64(m.grants[0].policy.window)
	}
	return m.seen/length*length + length
}

// late sets the clock to an earlier time, except for a log.
func (m *model) late() {
	late := int64(m.byte()) * int64(time.Second) / 8
	if m.kind.policy.algorithm != AlgorithmSlidingLog {
		m.catchUp()
		m.set(m.seen - late)
	}
}

// catchUp makes a limiter forget all windows that are over. Otherwise a late call could observe whether they were
// forgotten.
func (m *model) catchUp() {
	if m.kind.perNano > 0 || m.kind.refill > 0 {
		return
	}
	now := m.now
	m.set(m.seen)
	m.limiter.Sweep()
	for _, k := range m.all() {
		if k.idle(m.seen) {
			k.clear()
		}
	}
	m.set(now)
}

func (m *model) becomesIdle() {
	if m.byte()%4 > 0 {
		return
	}
	for _, k := range m.keys {
		m.set(m.seen + k.reset(m.seen))
	}
}

func (m *model) takes() {
	k, q, key := m.key()
	n := m.tokens(q)
	switch m.byte() % 8 {
	case 0:
		want, _ := m.take(k, q, 1, m.now, m.now)
		require.Equal(m.t, want.Allowed, m.limiter.AllowKey(key), "%s: one under %s", m.call, q.name)
	case 1:
		both := make([]Decision, 2)
		for i := range both {
			both[i], _ = m.take(k, q, n, m.now, m.now)
		}
		got := make([]Decision, 2)
		require.NoError(m.t, m.limiter.TakeBatch([]Key{key, key}, n, got))
		require.Equal(m.t, both, got, "%s: twice %d under %s", m.call, n, q.name)
	case 2, 3:
		m.takesAt(k, q, key, n)
	default:
		want, _ := m.take(k, q, n, m.now, m.now)
		m.require(k, want, m.limiter.TakeKey(key, n), "%d under %s", n, q.name)
		if !want.Allowed && want.RetryAfter < time.Hour && m.byte()%2 == 0 {
			m.keepsPromise(k, q, key, n, want.RetryAfter)
		}
	}
}

// keepsPromise repeats a request a nanosecond before RetryAfter has passed, and when it has passed.
func (m *model) keepsPromise(k *modelKey, q *grants, key Key, n uint64, after time.Duration) {
	m.settlesEviction()
	now := m.now
	for _, early := range []int64{1, 0} {
		if m.set(now + int64(after) - early); m.full != nil && k.idle(m.at(now)) {
			continue // the reason was that there was no room, and Peek does not check that
		}
		want := m.answer(k, q, n, m.at(m.now), m.at(m.now)-m.now)
		require.Equal(m.t, early == 0, want.Allowed, "%s: paper, %d ns early", m.call, early)
		m.require(k, want, m.limiter.Peek(key, n), "%d under %s, %d ns early", n, q.name, early)
	}
	want, _ := m.take(k, q, n, m.now, m.now)
	require.True(m.t, want.Allowed)
	m.require(k, want, m.limiter.TakeKey(key, n), "%d under %s, as promised", n, q.name)
}

func (m *model) takesAt(k *modelKey, q *grants, key Key, n uint64) {
	m.makes("take at a time", q)
	nanos := m.now + (int64(m.byte())-64)*int64(maxLead)/128
	if m.kind.policy.algorithm == AlgorithmSlidingLog { // no room for tokens that leave only at the clock's time
		nanos = m.now
	} else if nanos < m.seen {
		m.catchUp()
	}
	if early := nanos - m.now - int64(maxLead); early > 0 {
		want := Decision{Limit: q.tokens, RetryAfter: time.Duration(early), ResetAfter: time.Duration(early)}
		if q.all {
			want.Limit = math.MaxUint64
		}
		require.Equal(m.t, want, m.limiter.TakeAt(key, n, time.Unix(0, nanos)), m.call)
		return
	}
	m.breaksTies(k, m.at(min(nanos, m.now)))
	want, _ := m.take(k, q, n, nanos, m.now)
	m.require(k, want, m.limiter.TakeAt(key, n, time.Unix(0, nanos)), "%d at %d ns, under %s", n, nanos-m.now, q.name)
}

func (m *model) peeks() {
	k, q, key := m.key()
	if ahead := m.byte(); ahead%2 == 1 {
		nanos := m.now + int64(ahead)*int64(maxLead)/256
		want := m.answer(k, q, 0, m.at(nanos), m.at(nanos)-nanos)
		m.require(k, want, m.limiter.TakeAt(key, 0, time.Unix(0, nanos)), "none under %s, ahead", q.name)
		return
	}
	n := m.tokens(q)
	want := m.answer(k, q, n, m.at(m.now), m.at(m.now)-m.now)
	m.require(k, want, m.limiter.Peek(key, n), "%d under %s", n, q.name)
}

func (m *model) drains() {
	k, q, key := m.key()
	for _, n := range []uint64{max(m.answer(k, q, 0, m.at(m.now), 0).Remaining, 1), 1} {
		want, _ := m.take(k, q, n, m.now, m.now)
		m.require(k, want, m.limiter.TakeKey(key, n), "%d under %s", n, q.name)
	}
}

func (m *model) opens(k *modelKey, q *grants, e *event, tk *taken) {
	tk.modelKey, tk.e, tk.under, tk.made, tk.resets, tk.policy = k, e, q, q.made, k.resets, m.policies
	tk.ends = m.limiter.table.Ends(m.limiter.table.Find(k.key.hash))
	if e != nil {
		tk.of = k.paper(e.at, e.n)
	}
	m.open = append(m.open, tk)
}

func (m *model) takesReceipt() {
	k, q, key := m.key()
	n := m.tokens(q)
	want, e := m.take(k, q, n, m.now, m.now)
	got, receipt := m.limiter.TakeReceipt(key, n)
	m.require(k, want, got, "%d under %s", n, q.name)
	m.opens(k, q, e, &taken{receipt: &receipt})
}

func (m *model) enters() {
	k, q, key := m.key()
	n := m.tokens(q)
	want, e := m.take(k, q, n, m.now, m.now)
	got, entry := m.limiter.TakeReceipt(key, n)
	m.require(k, want, got, "%d under %s", n, q.name)
	m.opens(k, q, e, &taken{entry: &entry})
}

func (q *grants) estimate(n uint64) uint64 {
	if q.tokens > 0 {
		return min(n, q.tokens)
	}
	return n
}

func (m *model) holds() {
	k, q, key := m.key()
	n := m.tokens(q)
	want, e := m.take(k, q, q.estimate(n), m.now, m.now)
	got, hold := m.limiter.Hold(key, n)
	m.require(k, want, got, "%d under %s", n, q.name)
	if got.Allowed {
		m.opens(k, q, e, &taken{hold: &hold})
		m.open[len(m.open)-1].unrecorded(q.estimate(n))
	} else {
		require.Zero(m.t, hold.Settle(math.MaxUint64), "%s: a hold of nothing", m.call)
	}
}

// holdsUpTo calls HoldUpTo with two random bounds.
func (m *model) holdsUpTo() {
	k, q, key := m.key()
	least, most := m.tokens(q), m.tokens(q)
	want, e, took := m.takeUpTo(k, q, q.estimate(max(least, 1)), most)
	got, hold := m.limiter.HoldUpTo(key, least, most)
	m.require(k, want, got, "%d to %d under %s", least, most, q.name)
	if !got.Allowed {
		require.Zero(m.t, hold.Settle(math.MaxUint64), "%s: a hold of nothing", m.call)
		return
	}
	require.Equal(m.t, took, hold.Taken(), "%s: %d to %d under %s", m.call, least, most, q.name)
	m.opens(k, q, e, &taken{hold: &hold})
	m.open[len(m.open)-1].unrecorded(took)
}

// unrecorded sets the number of tokens of a hold that took nothing because there was no room for a record.
func (tk *taken) unrecorded(n uint64) {
	if tk.e == nil && !tk.under.all {
		tk.of.n = n
	}
}

func (m *model) takeUpTo(k *modelKey, q *grants, least, most uint64) (d Decision, e *event, took uint64) {
	at := m.at(m.now)
	if q.all {
		return unlimitedDecision, nil, most
	}
	if q.tokens == 0 || most == 0 {
		return m.answer(k, q, least, at, at-m.now), nil, 0
	}
	k.under(q)
	if there := m.answer(k, q, 0, at, at-m.now).Remaining; there >= least {
		took = min(there, most)
		d, e = m.take(k, q, took, m.now, m.now)
		return d, e, took
	}
	m.speeds(k, q, at)
	return m.answer(k, q, least, at, at-m.now), nil, 0
}

func (m *model) reserves() {
	k, q, key := m.key()
	n, within := m.tokens(q), time.Duration(m.byte())*100*time.Millisecond
	if within == 25500*time.Millisecond { // so that the wait is long enough for a large quota
		within = time.Hour
	}
	m.floor = m.limiter.table.Watermark()
	defer func() { m.floor = 0 }()
	r, err := m.limiter.ahead(key, n, within)
	at := m.at(m.now)
	b, isBucket := k.account.(*bucket)
	switch {
	case m.kind.policy.algorithm == AlgorithmConcurrency:
		require.ErrorIs(m.t, err, errInFlight, m.call)
	case !isBucket:
		require.ErrorIs(m.t, err, ErrNotTokenBucket, m.call)
	case n == 0 || q.all:
		require.NoError(m.t, err, m.call)
		require.Zero(m.t, r.delay, m.call)
	case n > q.tokens:
		require.ErrorIs(m.t, err, ErrNever, m.call)
	default:
		if m.makesRoom(k, at) > 0 {
			if m.overflow == Refuse {
				require.ErrorIs(m.t, err, ErrTooLong, m.call)
			} else {
				require.NoError(m.t, err, m.call)
				require.Zero(m.t, r.delay, m.call)
			}
			return
		}
		wait, ok := b.reserve(at, n, int64(within))
		if !ok {
			require.ErrorIs(m.t, err, ErrTooLong, "%s: %d within %v under %s", m.call, n, within, q.name)
			m.speeds(k, q, at)
			return
		}
		require.NoError(m.t, err, "%s: %d within %v under %s", m.call, n, within, q.name)
		want := time.Duration(wait)
		if wait > 0 {
			want += time.Duration(at - m.now)
			m.promised = max(m.promised, at+wait)
		}
		require.Equal(m.t, want, r.delay, "%s: %d within %v under %s", m.call, n, within, q.name)
		e := k.notes(q, event{at: at + wait, n: n})
		m.opens(k, q, e, &taken{ahead: r})
		m.open[len(m.open)-1].of.at = at
	}
}

func (m *model) charges() {
	k, q, key := m.key()
	n := m.tokens(q) * uint64(1+m.byte()%8)
	want, lost := m.chargeOnPaper(k, q, n)
	got, gotLost := m.limiter.Charge(key, n)
	m.require(k, want, got, "%d under %s", n, q.name)
	require.Equal(m.t, lost, gotLost, "%s: lost of %d under %s", m.call, n, q.name)
}

func (m *model) chargeOnPaper(k *modelKey, q *grants, n uint64) (d Decision, lost uint64) {
	at := m.at(m.now)
	if !q.all && n > 0 {
		lost = n
		if q.tokens > 0 {
			charged, wait := m.pay(k, q, n, m.debt, at, m.now)
			if wait > 0 && m.overflow == Refuse {
				return q.noRoomFor(wait + at - m.now), n
			}
			if lost -= charged; lost == n {
				m.speeds(k, q, at)
			}
		}
	}
	return m.answer(k, q, 1, at, at-m.now), lost
}

func (m *model) sweeps() {
	for _, k := range m.keys {
		m.makes("sweep", k.last)
	}
	m.limiter.Sweep()
	m.requireSwept()
}

func (m *model) resets() {
	if m.byte()%4 > 0 {
		return
	}
	m.forget(pick(m, m.keys[:]))
}

func (m *model) forget(k *modelKey) {
	m.makes("reset", k.last)
	m.limiter.Reset(k.key)
	m.evicted(k)
}
