package atomicbucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnEntryOfARing: an entry has all seven bits of a state's version, and 56 bits of the tick.
func TestAnEntryOfARing(t *testing.T) {
	s := NewState(Live, 0b1000001, 0)
	require.Equal(t, uint64(0b1000001<<57|5), entryOf(s, 5))
	require.Equal(t, uint64(0b1000001<<57|1<<56-1), entryOf(s, ^uint64(0)))
	ring := make(Ring, 2)
	ring.Clear(s)
	for i := range ring {
		require.Equal(t, uint64(0b1000001<<57|1<<56), ring[i].Load(), "and it is gone")
	}
}

// aLog returns a log and the word of its state. Its ring has entries with the given ticks, the oldest first; the tick 0
// stands for a gone entry.
func aLog(t *testing.T, kept uint64, ticks ...uint64) (*log, *Word) {
	size := uint64(len(ticks))
	rule, err := NewSlidingLog(size, size, time.Microsecond)
	require.NoError(t, err)
	g := &log{rule: &rule, state: NewState(Live, 5, 77), ring: make(Ring, size), head: size - 1, count: kept}
	for i, tick := range ticks {
		g.newest = max(g.newest, tick)
		g.ring[i].Store(entryOf(g.state, tick))
		if tick == 0 {
			g.ring[i].Store(entryOf(g.state, 0) | goneBit)
		}
	}
	var at Word
	at.w.Store(uint64(g.state))
	return g, &at
}

// ticksOf returns the ticks of a ring, 0 for an entry that is gone.
func ticksOf(g *log) (ticks []uint64) {
	for i := range g.ring {
		tick, counts := g.unpackEntry(g.ring[i].Load())
		if !counts {
			tick = 0
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

func TestWhatAnExchangeDoes(t *testing.T) {
	for name, c := range map[string]struct {
		ring       []uint64
		behind     uint64
		hand, tick uint64
		want       []uint64
	}{
		"the third":                        {[]uint64{10, 20, 30, 40}, 4, 5, 30, []uint64{5, 10, 20, 40}},
		"the newest":                       {[]uint64{10, 20, 30, 40}, 4, 5, 40, []uint64{5, 10, 20, 30}},
		"the oldest":                       {[]uint64{10, 20, 30, 40}, 4, 5, 10, []uint64{5, 20, 30, 40}},
		"one of two":                       {[]uint64{10, 30, 30, 40}, 4, 5, 30, []uint64{5, 10, 30, 40}},
		"behind others of its tick":        {[]uint64{5, 5, 30, 40}, 4, 5, 30, []uint64{5, 5, 5, 40}},
		"only the two newest":              {[]uint64{10, 20, 30, 40}, 2, 25, 40, []uint64{10, 20, 25, 30}},
		"behind one that is gone":          {[]uint64{0, 20, 30, 40}, 4, 5, 30, []uint64{0, 5, 20, 40}},
		"itself":                           {[]uint64{10, 20, 30, 40}, 4, 30, 30, []uint64{10, 20, 30, 40}},
		"in nothing":                       {[]uint64{10, 20, 30, 40}, 0, 5, 30, []uint64{10, 20, 30, 40}},
		"newer than all":                   {[]uint64{10, 20, 30, 40}, 4, 5, 50, []uint64{5, 10, 20, 30}},
		"before one that is a tick newer":  {[]uint64{10, 20, 30, 40}, 4, 5, 39, []uint64{5, 10, 20, 40}},
		"behind one that is a tick older":  {[]uint64{10, 20, 30, 40}, 4, 11, 30, []uint64{10, 20, 30, 40}},
		"behind one that is far older":     {[]uint64{10, 20, 30, 40}, 4, 25, 40, []uint64{10, 20, 30, 40}},
		"before one that is a tick behind": {[]uint64{10, 20, 30, 40}, 4, 9, 11, []uint64{9, 20, 30, 40}},
	} {
		g, at := aLog(t, 4, c.ring...)
		g.exchange(c.behind, c.hand, c.tick, at)
		require.Equal(t, c.want, ticksOf(g), name)
	}
	g, at := aLog(t, 4, 10, 20, 30, 40)
	at.w.Store(uint64(NewState(Live, 6, 77)))
	g.exchange(4, 5, 30, at)
	require.Equal(t, []uint64{10, 20, 30, 40}, ticksOf(g), "of another version")
}

func TestWhatADropDoes(t *testing.T) {
	for _, c := range []struct {
		kept       uint64
		ring, want []uint64
	}{
		{4, []uint64{10, 20, 30, 40}, []uint64{10, 20, 30, 40}},
		{3, []uint64{10, 20, 30, 40}, []uint64{0, 20, 30, 40}},
		{1, []uint64{10, 20, 30, 40}, []uint64{0, 0, 0, 40}},
		{0, []uint64{10, 20, 30, 40}, []uint64{0, 0, 0, 0}},
		{2, []uint64{0, 20, 30, 40}, []uint64{0, 0, 30, 40}},
		{2, []uint64{0, 0, 30, 40}, []uint64{0, 0, 30, 40}},
	} {
		g, at := aLog(t, c.kept, c.ring...)
		require.True(t, g.drop(at))
		require.Equal(t, c.want, ticksOf(g), "%d of %v", c.kept, c.ring)
	}
	g, at := aLog(t, 2, 10, 20, 30, 40)
	at.w.Store(uint64(g.state) + 1)
	require.False(t, g.drop(at))
	require.Equal(t, []uint64{10, 20, 30, 40}, ticksOf(g), "the state is another")
}

// TestWhatTheStateSaysGoesBeforeTheRing: whatever the ring contains, entries that are not kept do not count, and
// pending entries have the newest tick.
func TestWhatTheStateSaysGoesBeforeTheRing(t *testing.T) {
	g, _ := aLog(t, 3, 10, 20, 30, 40)
	g.pending = 2
	for behind, want := range []uint64{40, 40, 20} {
		tick, counts := g.tick(uint64(behind))
		require.True(t, counts, behind)
		require.Equal(t, want, tick, behind)
	}
	_, counts := g.tick(3)
	require.False(t, counts)
	g.count, g.ring = 4, nil
	_, counts = g.tick(2)
	require.False(t, counts, "without a ring")
	_, counts = g.tick(1)
	require.True(t, counts)
}

// TestHowManyAreOfATick: usedAt returns how many tokens in the window were taken at a given tick.
func TestHowManyAreOfATick(t *testing.T) {
	g, _ := aLog(t, 6, 10, 20, 20, 21, 30, 30)
	g.rule.length = 100
	for tick, want := range map[uint64]uint64{5: 0, 9: 0, 10: 1, 11: 0, 19: 0, 20: 2, 21: 1, 22: 0, 29: 0, 30: 2, 31: 0} {
		require.Equal(t, want, g.usedAt(tick, 40), tick)
		require.Zero(t, g.usedAt(tick, 130), "all have left")
	}
	require.EqualValues(t, 1, g.usedAt(21, 120))
	require.Zero(t, g.usedAt(20, 120), "they have left this moment")
	require.Zero(t, g.usedAt(10, 120))
}
