package limitertest

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBenchmarkCountsAndCompares: each row reports its floor, and fails if the number of admitted requests is wrong.
func TestBenchmarkCountsAndCompares(t *testing.T) {
	turns := flag.Lookup("test.benchtime")
	defer func(was string) { require.NoError(t, turns.Value.Set(was)) }(turns.Value.String())
	require.NoError(t, turns.Value.Set("30x"))
	for _, r := range rows(true) {
		result := testing.Benchmark(func(b *testing.B) { r.measure(b, Config{New: plainBucket}) })
		assert.Equal(t, 30, result.N, r.name)
		assert.Positive(t, result.Extra["ns/op"], r.name)
		assert.Equal(t, r.name != "mixed", result.Extra["x-floor"] > 0 && result.Extra["floor-ns/op"] > 0, r.name)
		assert.Contains(t, result.Extra, "allocs/op")
		for _, allowed := range []bool{true, false} {
			other := testing.Benchmark(func(b *testing.B) {
				r.measure(b, Config{New: func(testing.TB, Limit) Limiter {
					return TakeFunc(func(string, int64) Decision { return Decision{Allowed: allowed} })
				}})
			})
			right := allowed && r.name != "mixed" && r.name != "denied-1k" || !allowed && r.name == "denied-1k"
			assert.Equal(t, right, len(other.Extra) > 0, "%s: a limiter that decides in another way has no figures", r.name)
		}
	}
}

// TestTheTrafficOfTheRows checks which keys each row uses, how often, and which requests must be admitted.
func TestTheTrafficOfTheRows(t *testing.T) {
	for _, r := range rows(true) {
		next := r.traffic(r, rand.New(rand.NewPCG(1, 2)))
		counts, admitted, all := map[uint64]int{}, 0, 16*max(r.before, 1000)
		for i := range all {
			key, yes := next(i)
			counts[key]++
			if yes {
				admitted++
			}
		}
		switch r.name {
		case "churn", "flood":
			assert.Len(t, counts, all, r.name)
			assert.NotContains(t, counts, uint64(r.before-1))
		case "mixed":
			assert.Len(t, counts, r.before, r.name)
			assert.Equal(t, perVisitor, counts[uint64(r.before)])
			assert.Equal(t, all/2, admitted)
		case "zipf-1m":
			assert.Greater(t, counts[0], all/20, r.name)
		case "everyday":
			last := 0 // requests of the last hundred clients
			for n := r.before - 100; n < r.before; n++ {
				last += counts[uint64(n)]
			}
			assert.InEpsilon(t, 50, 100*float64(counts[0])/float64(last), 0.2)
			// If a request takes 100 ns, even the first client does not exceed its limit.
			assert.Less(t, 1e7*float64(counts[0])/float64(all), float64(r.limit.Tokens))
		default:
			assert.Len(t, counts, r.before, r.name)
			assert.Equal(t, all/r.before, counts[0])
		}
		if r.name != "mixed" {
			assert.Equal(t, map[bool]int{true: 0, false: all}[r.name == "denied-1k"], admitted, r.name)
		}
	}
	seen := map[string]bool{}
	for n := range uint64(30_000) {
		key := string(appendKey(nil, n))
		require.False(t, seen[key], key)
		require.GreaterOrEqual(t, len(key), 12)
		require.LessOrEqual(t, len(key), 40)
		seen[key] = true
	}
}

// BenchmarkPlain measures the plain bucket of the tests.
func BenchmarkPlain(b *testing.B) { Benchmark(b, Config{New: plainBucket}) }
