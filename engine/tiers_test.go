package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A tieredKey is a key that changes its tier.
type tieredKey struct {
	*Limiter
	*hand
	t     *testing.T
	now   time.Duration
	tiers []Policy // tier 0 first
	last  int      // the tier under which it was charged last
	story []tierEvent
}

// A tierEvent has the tokens that a key was granted, and the numbers of the tier.
type tierEvent struct {
	at     time.Duration
	tokens uint64
	rate   float64
	burst  uint64
}

// These are the rates and bursts of the tiers.
var (
	tierRates  = []float64{1, 7, 10, 97, 100, 999.5, 1000}
	tierBursts = []uint64{1, 7, 10, 100, 1000}
)

func (k *tieredKey) key(tier int) Key { return k.Key("k").Tier(tier) }

func (k *tieredKey) notes(tier int, at time.Duration, n uint64) {
	p := k.tiers[tier]
	k.story = append(k.story, tierEvent{at, n, p.Rate().Tokens, p.Limit()})
}

// asks makes a call for the key: a take at the clock's time, a take ahead of it, or a reservation.
func (k *tieredKey) asks(random *rand.Rand) {
	tier := random.IntN(len(k.tiers))
	n := 1 + random.Uint64N(k.tiers[tier].Limit())
	at, given := k.now, uint64(0)
	switch random.IntN(8) {
	case 0:
		if delay, _, err := k.reserved(k.key(tier), n); err == nil {
			at, given = at+delay, n
		}
	case 1:
		ahead := time.Duration(random.Int64N(int64(maxLead)))
		if k.TakeAt(k.key(tier), n, k.hand.now().Add(ahead)).Allowed {
			at, given = at+ahead, n
		}
	default:
		if k.TakeKey(k.key(tier), n).Allowed {
			given = n
		}
	}
	k.notes(tier, at, given)
	if tier, known := k.table.LastTier(k.table.Find(k.key(0).hash)); known { // a refusal may change the tier or not
		k.last = tier
	}
}

func (k *tieredKey) reserved(key Key, n uint64) (time.Duration, *reserved, error) {
	r, err := k.ahead(key, n, 3*time.Second)
	if err != nil {
		return 0, nil, err
	}
	return r.delay, r, nil
}

// changes sets new numbers for a tier.
func (k *tieredKey) changes(random *rand.Rand) {
	tier := random.IntN(len(k.tiers))
	p := TokenBucket(PerSecond(tierRates[random.IntN(len(tierRates))]), tierBursts[random.IntN(len(tierBursts))])
	before := k.tiers[tier]
	k.tiers[tier] = p
	if err := k.SetPolicy(k.tiers[0], k.tiers[1:]...); err != nil { // the first tier's ticks do not fit another tier
		k.tiers[tier] = before
		return
	}
	if tier == k.last {
		k.notes(tier, k.now, 0)
	}
}

// requireFits requires that, over any time, the tokens due are at most what the highest burst and rate of that time
// allow.
func (k *tieredKey) requireFits() {
	for i, first := range k.story {
		for j, last := range k.story {
			if last.at < first.at || last.tokens == 0 {
				continue
			}
			sum, from, to := uint64(0), min(i, j), max(i, j)
			for at, e := range k.story {
				if e.at >= first.at && e.at <= last.at {
					sum, from, to = sum+e.tokens, min(from, at), max(to, at)
				}
			}
			rate, burst := 0.0, uint64(0)
			for _, e := range k.story[from : to+1] {
				rate, burst = max(rate, e.rate), max(burst, e.burst)
			}
			require.LessOrEqual(k.t, float64(sum), float64(burst)+rate*(last.at-first.at).Seconds()+0.001)
		}
	}
}

// TestAnyCourseUnderTiers (I1): a key that changes its tier gets at most what the highest burst and rate grant.
func TestAnyCourseUnderTiers(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2806))
			tiers := []Policy{TokenBucket(PerSecond(1), 100), TokenBucket(PerSecond(97), 10), TokenBucket(PerSecond(1000), 1000)}
			first := tierRates[random.IntN(len(tierRates))]
			tiers[0] = TokenBucket(PerSecond(first), 100)
			l, h := newLimiter(t, tiers[0], Tiers(tiers[1:]...))
			k := &tieredKey{Limiter: l, hand: h, t: t, tiers: tiers}
			given := 0
			for range 120 {
				switch random.IntN(5) {
				case 0:
					k.changes(random)
				case 1:
					step := time.Duration(random.Int64N(int64(2*time.Second) >> random.IntN(12)))
					k.now += step
					h.advance(step)
					if random.IntN(3) == 0 {
						l.Sweep()
					}
				default:
					k.asks(random)
					given += int(k.story[len(k.story)-1].tokens)
				}
			}
			k.requireFits()
			require.Positive(t, given)
		})
	}
}

// TestATierToAndFro (I1): a key does not get 1000 tokens again when its tier's limit returns to 1000.
func TestATierToAndFro(t *testing.T) {
	for _, between := range []int{0, 1, 2} {
		for _, sweeps := range []bool{false, true} {
			t.Run(fmt.Sprintf("tier %d, sweeps %v", between, sweeps), func(t *testing.T) {
				high, low, own := TokenBucket(Per(1000, time.Hour), 1000), TokenBucket(Per(10, time.Hour), 10), TokenBucket(PerSecond(100), 10)
				l, h := newLimiter(t, own, Tiers(high, TokenBucket(Per(97, time.Hour), 2000)))
				k, other := l.Key("k"), l.Key("other")
				require.True(t, l.TakeKey(k.Tier(1), 1000).Allowed)
				require.True(t, l.TakeKey(other.Tier(2), 500).Allowed)
				before := l.Peek(other.Tier(2), 1)
				require.NoError(t, l.SetPolicy(own, low, l.Policy(2)))
				h.advance(time.Second)
				switch between {
				case 2:
					require.True(t, l.TakeKey(k.Tier(2), 500).Allowed, "of 2000")
				default:
					require.False(t, l.TakeKey(k.Tier(between), 1).Allowed)
				}
				if sweeps {
					l.Sweep()
				}
				require.NoError(t, l.SetPolicy(own, high, l.Policy(2)))
				assert.Less(t, l.Peek(k.Tier(1), 1).Remaining, uint64(2))
				assert.Equal(t, before.Remaining, l.Peek(other.Tier(2), 1).Remaining)
			})
		}
	}
}

// TestALimiterOfOneRateHasOne: a limiter of one rate refuses quotas of other rates, and takes no memory for prices.
func TestALimiterOfOneRateHasOne(t *testing.T) {
	own := TokenBucket(PerSecond(97), 10)
	l, _ := newLimiter(t, own)
	for _, p := range []Policy{TokenBucket(PerSecond(97), 1000), TokenBucket(Per(194, 2*time.Second), 1), Unlimited(), Blocked()} {
		_, err := l.Quota(p)
		require.NoError(t, err, p)
	}
	for _, p := range []Policy{TokenBucket(PerSecond(98), 10), TokenBucket(Per(1, time.Hour), 1), TokenBucket(PerSecond(96.999), 10)} {
		_, err := l.Quota(p)
		require.ErrorContains(t, err, fmt.Sprintf("rate of %v: the limiter's records are of one rate, 97/s: want that, or a limiter with room for others "+
			"(engine.MaxQuota, engine.Tiers, engine.TokenBuckets)", p.Rate()), p)
	}
	several, _ := newLimiter(t, own, Tiers(TokenBucket(PerSecond(1), 1)))
	for _, other := range []*Limiter{l, several} {
		bytes := other.Stats().Bytes
		assert.Equal(t, other == several, bytes > 40*1000, bytes)
	}
}

// TestAQuotaOfTheSameRateAfterAChange (I1): tokens taken under a quota of the limiter's rate still count after the rate
// changes.
func TestAQuotaOfTheSameRateAfterAChange(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(100), 100))
	large, err := l.Quota(TokenBucket(PerSecond(100), 1000))
	require.NoError(t, err)
	k := l.Key("k")
	require.True(t, l.TakeKey(k.With(large), 1000).Allowed)
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(1), 100)))
	assert.Equal(t, 901*time.Second, l.Peek(k, 1).RetryAfter)
	assert.Equal(t, Decision{RetryAfter: Never}, l.TakeKey(k.With(large), 1))
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(100), 100)))
	assert.Equal(t, 9010*time.Millisecond, l.Peek(k, 1).RetryAfter)
}
