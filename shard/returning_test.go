package shard

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestReturningKeysFindTheirRecords (I7): clients that stay below their limit have a full bucket whenever they come
// back. The decisions are the same if such a client does not find its record, but they cost more. So at least the given
// percentage of requests must find it.
func TestReturningKeysFindTheirRecords(t *testing.T) {
	const slots = 10_000
	for _, c := range []struct {
		name  string
		load  float64 // the number of keys, as a share of the planned 0.6 keys per slot
		aged  bool    // other keys have used all slots before
		zipf  bool
		least float64 // percent of requests that find their record
	}{
		{"0.3 of the planned keys", 0.3, false, false, 99.9},
		{"0.6 of the planned keys", 0.6, false, false, 99},
		{"0.9 of the planned keys", 0.9, false, false, 93},
		{"0.6 by Zipf", 0.6, false, true, 99.5},
		{"0.6 in an aged table", 0.6, true, false, 99},
		{"0.9 in an aged table", 0.9, true, false, 93},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule, err := atomicbucket.NewTokenBucket(1e9, 1e9, 5)
			require.NoError(t, err)
			plan, err := NewPlan(&rule, 0)
			require.NoError(t, err)
			table, err := New(Config{Plan: plan, Slots: slots, Shards: 2, Start: 1})
			require.NoError(t, err)
			now, random := int64(1), rand.New(rand.NewPCG(1, 2))
			ask := func(key uint64) bool {
				now += 1000
				place := table.Find(key * 0x9e3779b97f4a7c15)
				if _, _, v := table.Hit(place, now, 1, 0); v == Admitted {
					return true
				}
				require.Equal(t, Admitted, table.Miss(place, now, 1, 0, nil).Verdict)
				return false
			}
			if c.aged {
				for key := range uint64(20 * slots) {
					ask(key + 1<<40)
				}
			}
			keys := uint64(c.load * 0.6 * slots)
			next := func() uint64 { return 1 + random.Uint64N(keys) }
			if c.zipf {
				z := rand.NewZipf(random, 1.1, 1, keys-1)
				next = func() uint64 { return 1 + z.Uint64() }
			}
			requests, hits := 0, 0
			for i := range uint64(60) * keys {
				if i%(10*keys) == 0 {
					table.SweepEpoch(now, nil)
				}
				if hit := ask(next()); i >= 20*keys {
					requests++
					if hit {
						hits++
					}
				}
			}
			share := 100 * float64(hits) / float64(requests)
			t.Logf("%.2f %% of %d requests found their record", share, requests)
			assert.GreaterOrEqual(t, share, c.least)
		})
	}
}
