package limitertest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestBenchmarkCountsAndCompares: each row has its floor beside it, and fails if requests are decided in another way.
func TestBenchmarkCountsAndCompares(t *testing.T) {
	for _, r := range rows() {
		result := testing.Benchmark(func(b *testing.B) { r.measure(b, Config{New: plainBucket, Keys: 100}) })
		assert.Positive(t, result.N, r.name)
		for _, name := range []string{"ns/op", "floor-ns/op", "x-floor"} {
			assert.Positive(t, result.Extra[name], "%s %s", r.name, name)
		}
		assert.Contains(t, result.Extra, "allocs/op")
		other := testing.Benchmark(func(b *testing.B) {
			r.measure(b, Config{New: func(testing.TB, Limit) Limiter {
				return TakeFunc(func(string, int64) Decision { return Decision{Allowed: !r.admits} })
			}})
		})
		assert.Empty(t, other.Extra, "%s: a limiter that decides in another way has no figures", r.name)
	}
}

// BenchmarkPlain is the plain bucket of the tests.
func BenchmarkPlain(b *testing.B) { Benchmark(b, Config{New: plainBucket}) }
