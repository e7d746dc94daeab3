package script

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/engine"
)

func TestPoliciesThatAStoreCannotKeep(t *testing.T) {
	for name, test := range map[string]struct {
		policy engine.Policy
		says   string
	}{
		"none":             {engine.Policy{}, "the zero Policy limits nothing"},
		"a batch refill":   {engine.BatchRefill(10, time.Second, 100), "a store does not keep batches"},
		"no rate":          {engine.TokenBucket(engine.PerSecond(0), 10), "must be above 0"},
		"too fast":         {engine.TokenBucket(engine.PerSecond(2e9), 10), "at most"},
		"no burst":         {engine.TokenBucket(engine.PerSecond(1), 0), "limit of 0 tokens: want 1 to 4294967296"},
		"a large burst":    {engine.TokenBucket(engine.PerSecond(1e9), 1<<32+1), "limit of 4294967297 tokens"},
		"decades to fill":  {engine.TokenBucket(engine.Per(1, time.Hour), 1<<32), "want at most 87600h0m0s (10 years)"},
		"a short window":   {engine.FixedWindow(10, 999*time.Nanosecond), "window of 999ns: want 1µs to 8760h0m0s"},
		"a long window":    {engine.FixedWindow(10, 365*24*time.Hour+1), "want 1µs to 8760h0m0s"},
		"a large window":   {engine.SlidingWindow(1<<24, time.Second), "limit of 16777216 tokens: want 1 to 16777215"},
		"a large log":      {engine.SlidingLog(4097, time.Second), "limit of 4097 tokens: want 1 to 4096"},
		"an aligned log":   {engine.SlidingLog(10, time.Second).Aligned(), "only a fixed window can be aligned"},
		"an empty sliding": {engine.SlidingWindow(0, time.Second), "limit of 0 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			limit, err := NewLimit(test.policy, Terms{})
			assert.Nil(t, limit)
			assert.ErrorContains(t, err, test.says)
		})
	}
}

// Two limits have the same kind exactly if each of them can use the other's state.
func TestKind(t *testing.T) {
	for want, policies := range map[string][]engine.Policy{
		"bucket":         {engine.TokenBucket(engine.PerSecond(97), 50), engine.TokenBucket(engine.Per(1, time.Hour), 3)},
		"quotas":         {engine.TokenBuckets(time.Minute), engine.TokenBuckets(time.Hour)},
		"fixed1000000":   {engine.FixedWindow(10, time.Second), engine.FixedWindow(11, time.Second)},
		"fixed2000000":   {engine.FixedWindow(10, 2*time.Second)},
		"aligned1000000": {engine.FixedWindow(10, time.Second).Aligned()},
		"sliding1000000": {engine.SlidingWindow(10, time.Second), engine.SlidingWindow(11, time.Second)},
		"log1000000":     {engine.SlidingLog(10, time.Second), engine.SlidingLog(11, time.Second)},
	} {
		for _, policy := range policies {
			assert.Equal(t, want, limitOf(t, policy).Kind(), "%v", policy)
		}
	}
}

// floor finds the same fraction as a search over every denominator.
func TestFloorIsTheLargestFractionBelow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 3000
	if testing.Short() {
		rounds = 100
	}
	for range rounds {
		x := big.NewRat(1+random.Int64N(1<<random.Int64N(40)), 1+random.Int64N(1<<random.Int64N(40)))
		most := 1 + random.Int64N(300)
		want := new(big.Rat)
		for den := int64(1); den <= most; den++ {
			num := new(big.Int).Mul(x.Num(), big.NewInt(den))
			if below := new(big.Rat).SetFrac(num.Quo(num, x.Denom()), big.NewInt(den)); below.Cmp(want) > 0 {
				want = below
			}
		}
		if want.Sign() == 0 {
			continue
		}
		assert.Zero(t, want.Cmp(floor(x, most)), "%v within %d: want %v, got %v", x, most, want, floor(x, most))
	}
}

// The rate of the scripts is never faster than the requested rate, and only slightly slower.
func TestFraction(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		tokens := math.Exp(random.Float64()*30 - 9)
		limit := 1 + random.Uint64N(1<<random.Int64N(33))
		rate, err := perMicrosecond(engine.PerSecond(tokens))
		if err != nil {
			continue
		}
		num, den, err := fraction(rate, limit, 3)
		if err != nil {
			continue
		}
		assert.LessOrEqual(t, big.NewRat(num, den).Cmp(rate), 0, "%v/s", tokens)
		part, _ := new(big.Rat).Quo(big.NewRat(num, den), rate).Float64()
		assert.Greater(t, part, 1-2e-6, "%v/s, limit %d", tokens, limit)
		assert.LessOrEqual(t, 4*float64(limit)*float64(den), float64(maxExact))
		assert.LessOrEqual(t, num, int64(maxExact))
	}
}

// NewLimit accepts each algorithm of the engine, or says why not.
func TestEveryAlgorithmIsKeptOrRefused(t *testing.T) {
	policies := map[engine.Algorithm]engine.Policy{
		engine.AlgorithmTokenBucket:   engine.TokenBucket(engine.PerSecond(1), 10),
		engine.AlgorithmBatchRefill:   engine.BatchRefill(10, time.Second, 10),
		engine.AlgorithmFixedWindow:   engine.FixedWindow(10, time.Second),
		engine.AlgorithmSlidingWindow: engine.SlidingWindow(10, time.Second),
		engine.AlgorithmSlidingLog:    engine.SlidingLog(10, time.Second),
		engine.AlgorithmConcurrency:   engine.Concurrency(10, time.Second),
	}
	numbers := map[uint8]engine.Algorithm{}
	for _, algorithm := range engine.Algorithms() {
		policy, known := policies[algorithm]
		if !assert.True(t, known, "%v is new: say here how a store keeps it", algorithm) {
			continue
		}
		limit, err := NewLimit(policy, Terms{})
		if algorithm == engine.AlgorithmBatchRefill {
			assert.ErrorContains(t, err, "a store does not keep")
			continue
		}
		assert.NoError(t, err)
		assert.NotContains(t, numbers, limit.number)
		numbers[limit.number] = algorithm
	}
}
