package admin

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-go/weir/engine"
)

func of(t testing.TB) func(n int) identity {
	l := limiter(t, engine.TokenBucket(engine.PerSecond(1), 1))
	return func(n int) identity { return identity{rule: "rule", key: l.KeyUint64(uint64(n))} }
}

// TestSketchKeepsItsBounds compares the bounds of a sketch with exact counts, for random streams.
func TestSketchKeepsItsBounds(t *testing.T) {
	id := of(t)
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 8).Draw(t, "watched")
		stream := rapid.SliceOf(rapid.IntRange(0, 30)).Draw(t, "stream")
		s, exact := newSketch(most), map[identity]uint64{}
		for _, n := range stream {
			s.add(id(n), keyLimit{}, func() string { return fmt.Sprint(n) })
			exact[id(n)]++
		}
		bound := uint64(len(stream) / most)
		for key, times := range exact {
			at, watched := s.index[key]
			if !watched {
				assert.LessOrEqual(t, times, s.floor())
				assert.LessOrEqual(t, times, bound)
				continue
			}
			e := s.entries[at]
			assert.Equal(t, key, e.identity)
			assert.LessOrEqual(t, e.count-e.maxError, times)
			assert.GreaterOrEqual(t, e.count, times)
			assert.LessOrEqual(t, e.maxError, bound)
		}
		assert.LessOrEqual(t, len(s.entries), most)
		assert.Len(t, s.index, len(s.entries))
	})
}

// TestAFloodDoesNotHideWhoIsRefusedMost: one key has every fiftieth refusal in a flood of keys. It stays first, and the
// true count is within its bounds.
func TestAFloodDoesNotHideWhoIsRefusedMost(t *testing.T) {
	id, r, random := of(t), newRefusals(), rand.New(rand.NewPCG(3, 4))
	heavy, times := id(-1), uint64(0)
	for i := range 200_000 {
		key := id(random.IntN(150_000))
		if i%50 == 7 {
			key, times = heavy, times+1
		}
		r.add(key, keyLimit{}, func() string {
			if key == heavy {
				return "heavy"
			}
			return "flood"
		})
		if i%40_000 == 39_999 {
			r.rotate()
		}
	}
	top, all := r.top(topKeys)
	assert.Equal(t, uint64(200_000), all)
	require.Len(t, top, topKeys)
	assert.Equal(t, heavy, top[0].keys[0].identity)
	assert.Equal(t, "heavy", top[0].keys[0].text)
	assert.LessOrEqual(t, top[0].lower, times)
	assert.GreaterOrEqual(t, top[0].upper, times)
	assert.Greater(t, top[0].lower, times*9/10, "the bound is narrow for a key that stands out")
	for i := range r.shards {
		for w := range r.shards[i].windows {
			assert.LessOrEqual(t, cap(r.shards[i].windows[w].entries), sketchCapacity, "memory is constant")
		}
	}
}

func TestRefusalsAreForgottenAfterAMinute(t *testing.T) {
	id, r := of(t), newRefusals()
	r.add(id(1), keyLimit{}, func() string { return "a" })
	for range windows - 1 {
		r.rotate()
		r.add(id(2), keyLimit{}, func() string { return "b" })
	}
	top, all := r.top(topKeys)
	require.Len(t, top, 2)
	assert.Equal(t, uint64(windows), all)
	assert.Equal(t, []refusedKey{{id(2), "b", windows - 1, windows - 1}}, top[0].keys, "counts of few keys are exact")
	r.rotate()
	top, all = r.top(topKeys)
	require.Len(t, top, 1)
	assert.Equal(t, uint64(windows-1), all)
	assert.Equal(t, "b", top[0].keys[0].text)

	e, found := r.find("rule", r.hash(id(2)))
	assert.True(t, found)
	assert.Equal(t, entry{identity: id(2), text: "b"}, e)
	_, found = r.find("rule", r.hash(id(1)))
	assert.False(t, found)
	_, found = r.find("another", r.hash(id(2)))
	assert.False(t, found)
}

func TestKeysForPeople(t *testing.T) {
	two := []string{"header:X-Api-Key or ip", "ip"}
	for text, want := range map[string]string{
		"ip:192.0.2.1":                     "ip:192.0.2.1",
		"text:6:text:a12:ip:192.0.2.1":     "X-Api-Key: a · ip:192.0.2.1",
		"text:6:text:a99:ip:2001:db8::/64": "X-Api-Key: a · ip:2001:db8::/64", // clipped
		"text:no length":                   "text:no length",
		"text:a\u202eb":                    `text:a\u202eb`,
		"text:\xff\n":                      `text:\xff\n`,
		"text:ä b":                         "text:ä b",
	} {
		assert.Equal(t, want, readable(text, two))
	}
	for label, want := range map[string]string{
		"header:X-Api-Key or ip": "X-Api-Key: a\\n", "cookie:id or none": "cookie id: a\\n",
		"path": "path a\\n", "host": "host a\\n",
	} {
		assert.Equal(t, want, readable("text:a\n", []string{label}))
	}
	assert.Equal(t, "ip:192.0.2.1", readable("ip:192.0.2.1", []string{"header:X-Api-Key or ip"}))
	assert.Equal(t, "text:6:text:a", readable("text:6:text:a", nil))
	assert.Equal(t, strings.Repeat("a", maxText)+"…", clip(strings.Repeat("a", 1<<20)))
	assert.Equal(t, "a", clip("a"))
}
