package envoy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/engine"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// TestMemo: the memo decides the requests of an exceeded window. It stops when the window ends, when hits are given
// back, and when the limit is raised.
func TestMemo(t *testing.T) {
	now := time.Unix(1000, 0)
	minute := config.Limit{Algorithm: engine.AlgorithmFixedWindow, Requests: 5, Window: time.Minute}
	tables := [2]table{storeTable{}, localTable{}} // two tables that differ
	asking := func(key string, hits uint64) *check {
		return &check{limit: minute, table: tables[0], counter: counter{text: key}, hits: hits, applies: true}
	}
	exceeds := func(key string, after uint64) *check {
		c := asking(key, 1)
		c.isOver, c.after, c.charged, c.reset = true, after, 1, 20*time.Second
		return c
	}
	m := newMemo(1 << 20)
	assert.False(t, m.decide(asking("a", 1), now))
	m.note(exceeds("a", 6), now)
	c := asking("a", 2)
	assert.True(t, m.decide(c, now))
	assert.Equal(t, []any{true, true, uint64(6), uint64(8), uint64(0), 20 * time.Second},
		[]any{c.isOver, c.fromMemo, c.before, c.after, c.remaining, c.reset})
	assert.False(t, m.decide(asking("b", 1), now))
	other := asking("a", 1)
	other.table = tables[1]
	assert.False(t, m.decide(other, now), "the window of another length")
	raised := asking("a", 1)
	raised.limit.Requests = 7
	assert.False(t, m.decide(raised, now), "7 hits fit")
	raised.hits = 2
	assert.True(t, m.decide(raised, now), "8 do not")
	assert.False(t, m.decide(asking("a", 0), now), "a look")
	assert.True(t, m.decide(asking("a", 1), now.Add(20*time.Second-1)))
	assert.False(t, m.decide(asking("a", 1), now.Add(20*time.Second)), "the next window")

	back := asking("a", 3)
	back.isRefund = true
	assert.False(t, m.decide(back, now))
	m.note(back, now)
	assert.False(t, m.decide(asking("a", 1), now), "hits were given back")

	bucket := exceeds("c", 6)
	bucket.limit.Algorithm = engine.AlgorithmTokenBucket
	m.note(bucket, now)
	assert.False(t, m.decide(asking("c", 1), now), "no window")
	uncharged := exceeds("d", 6)
	uncharged.charged = 0
	m.note(uncharged, now)
	assert.False(t, m.decide(asking("d", 1), now), "nothing is known of the counter")

	small := newMemo(memoBytes)
	small.note(exceeds("a", 6), now)
	small.note(exceeds("b", 6), now)
	assert.False(t, small.decide(asking("a", 1), now), "one place")
	assert.True(t, small.decide(asking("b", 1), now))
	assert.Equal(t, []Counter{
		{"ratelimit.localcache.hitCount", 1, true}, {"ratelimit.localcache.missCount", 1, true},
		{"ratelimit.localcache.lookupCount", 2, true}, {"ratelimit.localcache.overwriteCount", 1, true},
		{"ratelimit.localcache.entryCount", 1, true},
	}, small.counters(now))
	assert.EqualValues(t, 0, small.counters(now.Add(20 * time.Second))[4].Value, "the window is over")
	none := newMemo(memoBytes - 1)
	assert.Empty(t, none.counters(now))
	assert.Nil(t, none)
	none.note(exceeds("a", 6), now)
	none.forget(asking("a", 1))
	assert.False(t, none.decide(asking("a", 1), now))
}
