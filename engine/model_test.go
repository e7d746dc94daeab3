package engine

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/shard"
)

// modelPrograms is the number of random programs in an ordinary run.
var modelPrograms = flag.Uint64("programs", 1000, "how many random programs the model makes")

// FuzzModel (I1, I2, I7, I8) runs bytes as a program of calls, and compares every answer with the model.
func FuzzModel(f *testing.F) {
	testrace.OneGoroutine(f)
	for seed := range *modelPrograms {
		random, program := rand.New(rand.NewPCG(seed, 28)), make([]byte, 600)
		for i := range program {
			program[i] = byte(random.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) { newModel(t, program).run() })
}

// A model runs the calls of a program on a limiter, and also computes the answers from its own exact accounts. Comments
// say "on paper" for these accounts.
type model struct {
	t         *testing.T
	program   []byte
	limiter   *Limiter
	now       int64
	seen      int64 // the latest time that the clock had
	leading   int64 // the latest time at which a request was granted ahead of the clock
	promised  int64 // the latest time at which a waiting request is due
	grants    []*grants
	refusals  RefusalCharge
	debt      uint64 // the bound of a key's debt, as a multiple of its limit
	kind      modelKind
	prices    *prices
	floor     int64 // the watermark before a call that the limiter carries out first, and the accounts after it
	policies  int
	longest   time.Duration // the longest window so far; 0 before the first change
	stretched bool          // the rate, batches or length was changed, so windows may last longer than their length
	keys      [3]*modelKey
	open      []*taken
	call      string
	verb      string
	made      map[cell]bool
	*full     // nil if there is room for all keys
}

type modelKey struct {
	key Key
	account
	story  []*event
	resets int
	given  int64   // when tokens were last given back with a receipt
	last   *grants // the grants under which it was charged last
	vague  bool    // tokens were given back without a receipt, so the story is not complete
}

type event struct {
	at      int64
	n       uint64 // tokens, minus those that were given back
	q       *grants
	charged bool
}

type taken struct {
	*modelKey
	of      paper
	e       *event
	under   *grants
	made    int // grants.made at the time of the take
	ends    shard.Ends
	resets  int
	policy  int
	receipt *Receipt
	hold    *Receipt
	entry   *Receipt
	ahead   *reserved
}

// notes adds an event to the key's story.
func (k *modelKey) notes(q *grants, e event) *event {
	now := *q
	e.q, k.last = &now, q
	k.story = append(k.story, &e)
	return &e
}

func (m *model) byte() byte {
	if len(m.program) == 0 {
		return 0
	}
	b := m.program[0]
	m.program = m.program[1:]
	return b
}

func pick[T any](m *model, list []T) T { return list[int(m.byte())%len(list)] }

// modelCalls are the calls of a program. More frequent calls are listed several times.
var modelCalls = []struct {
	name string
	call func(m *model)
}{
	{"take", (*model).takes}, {"take", (*model).takes}, {"take", (*model).takes}, {"peek", (*model).peeks},
	{"take", (*model).drains}, {"time", (*model).passes}, {"time", (*model).passes}, {"time", (*model).passes},
	{"receipt", (*model).takesReceipt}, {"receipt", (*model).takesReceipt}, {"hold", (*model).holds},
	{"hold", (*model).holds}, {"hold", (*model).holdsUpTo}, {"enter", (*model).enters}, {"reserve", (*model).reserves},
	{"reserve", (*model).reserves}, {"end", (*model).ends}, {"end", (*model).ends}, {"end", (*model).ends},
	{"end", (*model).ends}, {"charge", (*model).charges}, {"refund", (*model).refunds}, {"reset", (*model).resets},
	{"sweep", (*model).sweeps}, {"all", (*model).takesAll}, {"hold all", (*model).holdsAll},
	{"late", (*model).late}, {"policy", (*model).setsPolicy}, {"idle", (*model).becomesIdle}, {"others", (*model).refills},
}

func (m *model) run() {
	defer m.limiter.Close()
	for calls := 0; len(m.program) > 0 && calls < 200; calls++ {
		c := pick(m, modelCalls)
		m.call, m.verb = fmt.Sprintf("%v, call %d, %s", m.kind.policy, calls, c.name), c.name
		c.call(m)
		m.settlesEviction()
	}
	m.requireEnd()
}

// requireEnd checks, at the end of a program, that the tokens that each key was granted fit its limits.
func (m *model) requireEnd() {
	for _, k := range m.keys {
		m.requireFits(k)
	}
	m.requireStats()
}

// at returns the time at which a call is decided: its own time, or the table's latest time.
func (m *model) at(nanos int64) int64 { return max(nanos, m.limiter.table.Watermark()) }

func (m *model) near(at int64) nearby { return nearby{max(at, m.leading, m.promised)} }

func (m *model) key() (*modelKey, *grants, Key) {
	k := pick(m, m.keys[:])
	q := pick(m, m.grants)
	if q.tokens > 0 {
		k.under(q)
	}
	m.breaksTies(k, m.at(m.now))
	m.makes(m.verb, q)
	return k, q, q.key(k.key)
}

// tokens draws a number of tokens: 0, a few, up to the limit, or more than the limit.
func (m *model) tokens(q *grants) uint64 {
	b := m.byte()
	switch {
	case b < 8:
		return 0
	case b < 16:
		return q.tokens + 1 + uint64(b%4)
	case b < 20:
		return math.MaxUint64 - uint64(b)
	case b < 80:
		return max(q.tokens, 1) - uint64(b)%max(q.tokens, 1)
	}
	return 1 + uint64(b%3)
}

// take takes n tokens on paper, at a time that may differ from the clock's.
func (m *model) take(k *modelKey, q *grants, n uint64, nanos, clock int64) (Decision, *event) {
	at := m.at(nanos)
	if n == 0 || q.all || q.tokens == 0 {
		return m.answer(k, q, n, at, at-nanos), nil
	}
	if k.under(q); n <= q.tokens {
		if wait := m.makesRoom(k, at); wait > 0 {
			return m.withoutRoom(k, q, n, at, at-nanos, wait), nil
		}
	}
	if n <= q.tokens && k.account.take(at, n) {
		if at > clock {
			m.leading = max(m.leading, at)
		}
		e := k.notes(q, event{at: at, n: n})
		d := m.answer(k, q, 0, at, at-nanos)
		return d, e
	}
	paid := uint64(0)
	switch m.refusals {
	case ChargeTheRest:
		paid, _ = m.pay(k, q, n, 1, at, clock)
	case ChargePenalty:
		paid, _ = m.pay(k, q, n, m.debt, at, clock)
	}
	if paid == 0 && (n <= q.tokens || m.refusals != ChargeNothing) {
		m.speeds(k, q, at)
	}
	d := m.answer(k, q, n, at, at-nanos)
	if d.Allowed {
		require.Zero(m.t, n, "%s: paper refuses and allows", m.call)
	}
	return d, nil
}

func (q *grants) noRoomFor(wait int64) Decision {
	return Decision{Limit: q.tokens, RetryAfter: time.Duration(wait), ResetAfter: time.Duration(wait)}
}

// withoutRoom returns the answer to a take for which a record has no room.
func (m *model) withoutRoom(k *modelKey, q *grants, n uint64, at, late, wait int64) Decision {
	if m.overflow == Refuse {
		return q.noRoomFor(wait + late)
	}
	require.True(m.t, k.account.take(at, n), m.call)
	d := m.answer(k, q, 0, at, late)
	k.clear()
	return d
}

// speeds converts the debt of a refused key to the price of the grants q, if that price is faster.
func (m *model) speeds(k *modelKey, q *grants, at int64) {
	if b, ok := k.account.(*bucket); ok && b.speeds() {
		b.charges(at, b.seen(at))
		k.notes(q, event{at: at})
	}
}

// pay charges n tokens on paper. If there is no room for a record, it returns the time until there is room.
func (m *model) pay(k *modelKey, q *grants, n, limits uint64, at, clock int64) (charged uint64, wait int64) {
	k.under(q)
	if wait = m.makesRoom(k, at); wait > 0 {
		return 0, wait
	}
	charged = k.charge(at, n, limits)
	if charged > 0 {
		k.notes(q, event{at: at, n: charged, charged: true})
		if at > clock {
			m.leading = max(m.leading, at)
		}
	}
	return charged, 0
}

// answer returns the answer to a request for n tokens.
func (m *model) answer(k *modelKey, q *grants, n uint64, at, late int64) Decision {
	switch {
	case q.all:
		return unlimitedDecision
	case q.tokens == 0 && n == 0:
		return Decision{Allowed: true}
	case q.tokens == 0:
		return Decision{RetryAfter: Never}
	}
	k.under(q)
	d := Decision{Limit: q.tokens, Remaining: k.remaining(at), RetryAfter: Never}
	if reset := k.reset(at); reset > 0 {
		d.ResetAfter = time.Duration(reset + late)
	}
	if n <= q.tokens {
		d.RetryAfter = time.Duration(k.retry(at, n))
		if b, ok := k.account.(*bucket); ok && d.RetryAfter > 0 && b.speeds() {
			d.ResetAfter = time.Duration(b.wait(at, b.seen(at)) + late)
		}
		if d.Allowed = d.RetryAfter == 0; !d.Allowed {
			d.RetryAfter += time.Duration(late)
		}
	}
	return d
}

func (m *model) require(k *modelKey, want, got Decision, what string, args ...any) {
	if w, ok := k.account.(*window); ok && w.idle(m.at(m.now)) && got.ResetAfter == 0 {
		want.ResetAfter = 0 // a window in which nothing counts may be forgotten before it is over
	}
	if want != got {
		require.Equal(m.t, want, got, "%s: %s", m.call, fmt.Sprintf(what, args...))
	}
}

func newModel(t *testing.T, program []byte, more ...Option) *model {
	m := &model{t: t, program: program, now: 1_700_000_000_123_456_789, debt: 1}
	kind := pick(m, modelKinds)
	m.kind = kind
	options := []Option{MaxKeys(100), Shards(1), SweepInterval(24 * time.Hour), ClockFunc(func() time.Time { return time.Unix(0, m.now) })}
	if len(kind.tiers) > 0 {
		options = append(options, Tiers(kind.tiers...))
	}
	if kind.perNano > 0 || kind.refill > 0 {
		m.debt = 10
	}
	if draw := m.byte(); draw%2 == 1 && kind.policy.algorithm != AlgorithmSlidingLog { // a log's ticks would be longer
		m.debt = 1 + uint64(draw/2%4)
		options = append(options, MaxDebt(m.debt))
	}
	if kind.policy.algorithm != AlgorithmConcurrency {
		m.refusals = pick(m, []RefusalCharge{ChargeNothing, ChargeNothing, ChargeTheRest, ChargePenalty})
		options = append(options, ChargeRefusals(m.refusals))
	}
	var err error
	fullness := m.byte()
	isFull := fullness%4 == 3 && kind.policy.algorithm != AlgorithmSlidingLog // it is not known when a log is idle
	overflow := []OverflowPolicy{Evict, Refuse, Evict, Admit}[fullness/4%4]
	if isFull {
		options[0] = MaxKeys(1)
		options = append(options, Overflow(overflow))
	}
	m.limiter, err = New(kind.policy, append(options, more...)...)
	require.NoError(t, err)
	m.seen, m.leading, m.promised = m.now, 0, 0
	m.prices = &prices{
		clock: func() int64 { return m.at(m.now) },
		watermark: func() int64 {
			if m.floor > 0 { // the limiter has made the call already, and may have moved the watermark
				return m.floor
			}
			return m.limiter.table.Watermark()
		},
		ahead: func() int64 { return max(m.leading, m.promised, m.seen) },
	}
	for i := range m.keys {
		m.keys[i] = m.newKey(kind, uint64(i))
	}
	if m.draw(kind); isFull {
		m.fills(kind, overflow)
	}
	return m
}

func (m *model) newKey(kind modelKind, n uint64) *modelKey {
	k := &modelKey{key: m.limiter.KeyUint64(n), account: kind.account()}
	if b, ok := k.account.(*bucket); ok && kind.hasPrices() {
		b.prices = m.prices
	}
	return k
}
