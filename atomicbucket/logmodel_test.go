package atomicbucket

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/word"
)

// A listed is a model of a sliding log: a list of the ticks of its tokens, the newest first.
type listed struct {
	length uint64
	ticks  []uint64
	newest uint64 // the tick of the last request, even if that was given back
	empty  bool   // all was given back
}

func (m *listed) in(now uint64) (n uint64) {
	for _, tick := range m.ticks {
		if int64(tick+m.length-now) > 0 {
			n++
		}
	}
	return n
}

// until returns how many ticks must pass until at most n tokens are in the window.
func (m *listed) until(n, now uint64) uint64 {
	if n >= uint64(len(m.ticks)) {
		return 0
	}
	return uint64(max(int64(m.ticks[n]+m.length-now), 0))
}

// TestALogAgainstAList (I1, I2, I8): all results of a log equal the results of a list of requests, for takes and
// refunds of any size, and for late calls.
func TestALogAgainstAList(t *testing.T) {
	for _, c := range []struct {
		limit, most uint64
		window      time.Duration
	}{{1, 1, time.Second}, {2, 2, time.Second}, {3, 7, time.Second}, {7, 7, time.Minute}, {5, 8, time.Minute}, {2000, 4096, time.Minute}, {4, 4096, MaxWindow}} {
		l, err := NewSlidingLog(c.limit, c.most, c.window)
		require.NoError(t, err)
		tick := l.clock.first(1)
		for seed := range uint64(40) {
			random := rand.New(rand.NewPCG(seed, c.most))
			nanos := random.Int64N(1<<61) >> random.IntN(30)
			m := &listed{length: l.length}
			ring := make(Ring, c.most)
			var at Word
			claimed, _ := at.Claim(State(seed%2*uint64(NewState(Free, 126, 0))), 0)
			ring.Clear(claimed)
			payload, ok := l.Take(Record{NewState(Live, 0, l.Full(l.Ticks(nanos))), nil}, l.Ticks(nanos), l.Quota().Demand(1))
			require.True(t, ok)
			s, _ := at.Commit(at.Publish(claimed), Live, payload)
			m.ticks, m.newest = []uint64{l.Ticks(nanos)}, l.Ticks(nanos)
			receipts := []Receipt{l.Receipt(s, nanos, 1)}
			latest := nanos
			for range 60 {
				latest += []int64{0, 0, 1, int64(tick), int64(c.window) / 3, int64(c.window)}[random.IntN(6)]
				nanos = latest - []int64{0, 0, 0, 1, int64(c.window) / 4}[random.IntN(5)]
				nanos = max(nanos, 0)
				now := l.Ticks(nanos)
				r := Record{s, ring}
				what := fmt.Sprintf("%+v, seed %d, %d ns", c, seed, nanos)
				require.Equal(t, m.in(now), l.Debt(r, now), what)
				require.Equal(t, m.in(now), l.Tokens(l.Debt(r, now)), what)
				wait := uint64(0)
				if !m.empty {
					wait = uint64(max(int64(m.newest+m.length-now), 0))
				}
				require.Equal(t, wait, l.UntilIdle(s, now), what)
				require.Equal(t, wait == 0, l.Idle(s, now), what)
				require.Equal(t, uint64(max(int64(now-m.newest-m.length), 0)), l.IdleFor(s, now), what)
				for _, n := range []uint64{0, 1, 2, c.limit} {
					if n > c.limit {
						continue
					}
					lack := uint64(0)
					if n > 0 {
						lack = m.until(c.limit-n, now)
					}
					d := l.Quota().Demand(n)
					require.Equal(t, lack, l.Shortfall(r, now, d), what)
					want := Status{Remaining: c.limit - min(m.in(now), c.limit), RetryAfter: l.Wait(nanos, lack), ResetAfter: l.Wait(nanos, m.until(0, now))}
					if in := m.in(now); in > 0 {
						want.ResetAfter = l.Wait(nanos, m.ticks[in-1]+m.length-now)
					}
					require.Equal(t, want, l.Status(r, nanos, d), what)
				}
				lower := l.Status(r, nanos, Demand{0, 1, 1}) // the status under a tier with a lower limit
				require.Equal(t, []uint64{1 - min(m.in(now), 1), 0}, []uint64{lower.Remaining, uint64(lower.RetryAfter)}, what)
				if random.IntN(3) > 0 {
					d := l.Quota().Demand(1 + random.Uint64N(min(c.limit, 5)))
					payload, ok := l.Take(r, now, d)
					require.Equal(t, m.until(c.limit-d.Cost, now) == 0, ok, what)
					if !ok {
						continue
					}
					require.True(t, l.Flush(r, now, &at), what)
					s, ok = at.Move(s, payload)
					require.True(t, ok)
					m.newest, m.empty = max(m.newest, now), false
					m.ticks = slices.Insert(m.ticks, 0, slices.Repeat([]uint64{m.newest}, int(d.Cost))...)
					m.ticks = m.ticks[:min(len(m.ticks), int(c.most))]
					receipts = append(receipts, l.Receipt(s, nanos, 1))
					require.Equal(t, Receipt{m.newest, 0, nanos, recordInfo{uint8(s.Version()), true}}, receipts[len(receipts)-1], what)
				} else {
					d, of := l.Quota().Demand(random.Uint64N(4)), Receipt{}
					if random.IntN(4) > 0 {
						of = receipts[max(0, len(receipts)-1-random.IntN(5))]
					}
					before := s
					s, ok = l.Refund(r, Return{Now: now, Latest: now, Demand: d, Of: of}, &at)
					require.True(t, ok, what)
					require.Equal(t, s, at.Load(), what)
					if m.refund(now, d.Cost, of) {
						require.Equal(t, (before.Version()+1)&versionMask, s.Version(), what)
					} else {
						require.Equal(t, before, s, what)
					}
				}
			}
		}
	}
}

// refund removes tokens with the tick of the receipt or, without a receipt, the oldest tokens. It reports whether there
// were any.
func (m *listed) refund(now, cost uint64, of Receipt) bool {
	ticks := m.ticks[:m.in(now)]
	end, mine := len(ticks), len(ticks) // end of the tokens that may be removed, and how many there are
	if of.known {
		first := slices.Index(ticks, of.tick)
		for mine, end = 0, first; end >= 0 && end < len(ticks) && ticks[end] == of.tick; end++ {
			mine++
		}
	}
	n := min(int(cost), mine)
	if n == 0 {
		return false
	}
	m.ticks = slices.Delete(ticks, end-n, end)
	m.empty = len(m.ticks) == 0
	return true
}

// TestALogThatChangesUnderARefund (R10): a refund writes nothing if the state that it has read was replaced.
func TestALogThatChangesUnderARefund(t *testing.T) {
	l, err := NewSlidingLog(5, 5, time.Minute)
	require.NoError(t, err)
	const now = uint64(1 << 40)
	ring := make([]word.Word, 5)
	var at Word
	claimed, _ := at.Claim(0, 0)
	Ring(ring).Clear(claimed)
	s, _ := at.Commit(at.Publish(claimed), Live, l.pack(now, 2, lastRequest(2)))
	gone := Record{s, ring}
	dump := func() (words []uint64) {
		for i := range ring {
			words = append(words, ring[i].Load())
		}
		return words
	}
	before := dump()
	other, _ := at.Move(s, l.pack(now+1, 3, lastRequest(1)))
	_, ok := l.Refund(gone, Return{Now: now, Latest: now, Demand: l.Quota().Demand(1), Of: Receipt{}}, &at)
	assert.False(t, ok)
	_, ok = l.Refund(gone, Return{Now: now, Latest: now, Demand: l.Quota().Demand(1), Of: Receipt{tick: now, recordInfo: recordInfo{known: true}}}, &at)
	assert.False(t, ok)
	_, ok = l.Refund(gone, Return{Now: now, Latest: now, Demand: l.Quota().Demand(0), Of: Receipt{}}, &at)
	assert.False(t, ok, "and nothing is answered of it")
	assert.False(t, l.Flush(gone, now, &at))
	assert.Equal(t, other, at.Load())
	assert.Equal(t, before, dump())
}
