//go:build explore

package atomicbucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
)

// TestAnExchangeBesideOthersAtEveryStep: R10 of shard/doc.go. Before any operation of an exchange ([log.exchange]), the
// slot gets another tenure or a newer request. The exchange must change neither the ring of the new tenure nor the
// newer entry.
func TestAnExchangeBesideOthersAtEveryStep(t *testing.T) {
	t.Run("a tenure", func(t *testing.T) {
		interleave.Inject(func() (call, other func(), check func(string)) {
			g, at := aLog(t, 4, 10, 20, 30, 40)
			next := NewState(Live, 6, 77)
			return func() { g.exchange(4, 5, 40, at) },
				func() {
					for i, tick := range []uint64{11, 21, 31, 40} {
						g.ring[i].Poke(entryOf(next, tick))
					}
					at.w.Poke(uint64(next))
				},
				func(what string) { require.Equal(t, []uint64{11, 21, 31, 40}, ticksOf(g), what) }
		})
	})
	for i := range 4 { // the other call comes before the exchange of entry i
		g, at := aLog(t, 4, 10, 20, 30, 40)
		var before []uint64
		word.Before = func(a word.Access) {
			if a.Word == &g.ring[i] && a.Op == word.CompareAndSwap {
				word.Before = nil
				g.ring[i].Poke(entryOf(g.state, 45))
				before = ticksOf(g)
			}
		}
		g.exchange(4, 5, 40, at)
		word.Before = nil
		require.NotNil(t, before, i)
		require.Equal(t, before, ticksOf(g), i)
	}
}

// TestADropBesideOthersAtEveryStep: R10 of shard/doc.go. Before any operation of a drop ([log.drop]), another call
// finishes the same drop, changes the slot's state, and overwrites an entry with a newer request. From then on, the
// first drop must change nothing. At every moment, all entries older than a gone entry are gone, too.
func TestADropBesideOthersAtEveryStep(t *testing.T) {
	for i := range 3 {
		interleave.Inject(func() (call, other func(), check func(string)) {
			g, at := aLog(t, 1, 10, 20, 30, 40)
			want := []uint64(nil)
			return func() { g.drop(at) },
				func() {
					was := ticksOf(g)
					for j := range was {
						require.True(t, j == 0 || was[j] != 0 || was[j-1] == 0, "%v", was)
					}
					for j := range 3 { // the other call has dropped what the state says
						g.ring[j].Poke(g.ring[j].Peek() | goneBit)
					}
					at.w.Poke(at.w.Peek() + 1)
					g.ring[i].Poke(entryOf(g.state, 39))
					want = ticksOf(g)
				},
				func(what string) {
					require.Equal(t, want, ticksOf(g), "%s: nothing is changed any more", what)
				}
		})
	}
}

// TestADropBesideAnExchangeAtEveryStep: R10 of shard/doc.go. Before any operation of a drop, a late exchange gives an
// older tick to an entry that is not dropped yet. The entry must be dropped anyway.
func TestADropBesideAnExchangeAtEveryStep(t *testing.T) {
	for i := range 3 {
		interleave.Inject(func() (call, other func(), check func(string)) {
			g, at := aLog(t, 1, 10, 20, 30, 40)
			return func() { require.True(t, g.drop(at)) },
				func() {
					if e := g.ring[i].Peek(); e&goneBit == 0 {
						g.ring[i].Poke(e - 5)
					}
				},
				func(what string) { require.Equal(t, []uint64{0, 0, 0, 40}, ticksOf(g), what) }
		})
	}
}

// TestALogBesideAnExchangeAtEveryStep: before any operation of a call, entries get older ticks, so that some leave the
// window. The fields of the status must be consistent, and usedAt must not count more tokens of a tick than the log
// had.
func TestALogBesideAnExchangeAtEveryStep(t *testing.T) {
	older := func(g *log, ticks ...uint64) {
		for i, tick := range ticks {
			g.ring[i].Poke(entryOf(g.state, tick))
		}
	}
	t.Run("of a tick", func(t *testing.T) {
		interleave.Inject(func() (call, other func(), check func(string)) {
			g, _ := aLog(t, 4, 30, 30, 30, 40)
			g.rule.length = 100
			of := uint64(0)
			return func() { of = g.usedAt(30, 60) },
				func() { older(g, 5, 20, 20, 25) },
				func(what string) { require.LessOrEqual(t, of, uint64(3), what) }
		})
	})
	for _, cost := range []uint64{0, 1, 2, 4} {
		t.Run("status", func(t *testing.T) {
			interleave.Inject(func() (call, other func(), check func(string)) {
				g, _ := aLog(t, 4, 1030, 1030, 1030, 1030)
				l := g.rule
				s := NewState(Live, 5, l.pack(1030, 3, lastRequest(0)))
				var status Status
				return func() { status = l.Status(Record{s, g.ring}, 1500, Demand{cost, 4, 1}) },
					func() { older(g, 5, 10, 20, 490) },
					func(what string) {
						require.Equal(t, cost > status.Remaining, status.RetryAfter > 0, "%s: %+v", what, status)
						require.Equal(t, status.Remaining < 4, status.ResetAfter > 0, "%s: %+v", what, status)
						require.LessOrEqual(t, status.ResetAfter, 530*time.Nanosecond, what)
					}
			})
		})
	}
}

// TestAFlushBesideAnExchangeAtEveryStep: R10 of shard/doc.go. Before any operation of a flush, a late exchange gives an
// older tick to the entry that the flush is about to overwrite. The request must be in the ring afterwards.
func TestAFlushBesideAnExchangeAtEveryStep(t *testing.T) {
	interleave.Inject(func() (call, other func(), check func(string)) {
		g, at := aLog(t, 4, 10, 20, 30, 40)
		g.pending, g.newest = 1, 50
		return func() { require.True(t, g.flush(at)) },
			func() { g.ring[3].Poke(entryOf(g.state, 35)) },
			func(what string) { require.Equal(t, []uint64{10, 20, 30, 50}, ticksOf(g), what) }
	})
}
