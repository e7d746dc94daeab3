package engine

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/reference"
)

type modelKind struct {
	policy  Policy
	tiers   []Policy
	quotas  []Policy
	ticker  // only for buckets
	account func() account
}

// hasPrices reports whether records store the price of their tokens.
func (kind modelKind) hasPrices() bool {
	return kind.policy.algorithm == AlgorithmTokenBucket && (len(kind.tiers) > 0 || kind.policy.grant == grantsQuotas)
}

func (kind modelKind) tokenOf(p Policy) int64 {
	if p.algorithm != AlgorithmTokenBucket || p.grant != grantsLimit {
		return 1
	}
	return int64(p.rate.Period) * max(kind.perNano, 1) / int64(p.rate.Tokens)
}

// draw makes the grants of the model: the tiers, the quotas, and a tier that does not exist.
func (m *model) draw(kind modelKind) {
	add := func(name string, p Policy, key func(Key) Key) {
		q := &grants{name: name, key: key, policy: p, ticks: kind.ticker, token: kind.tokenOf(p), tokens: p.limit, all: p.grant == grantsAll}
		if p.grant != grantsLimit {
			q.tokens = 0
		}
		m.grants, q.ever = append(m.grants, q), q.tokens
	}
	for tier := range len(kind.tiers) + 1 {
		add(fmt.Sprint("tier ", tier), m.limiter.Policy(tier), func(k Key) Key { return k.Tier(tier) })
	}
	add("a tier that there is not", Blocked(), func(k Key) Key { return k.Tier(9) })
	for _, p := range kind.quotas {
		quota, err := m.limiter.Quota(p)
		require.NoError(m.t, err)
		add(p.String(), p, func(k Key) Key { return k.With(quota) })
	}
}

// modelKindsOfBuckets returns kinds of limiters with token buckets.
func modelKindsOfBuckets() []modelKind {
	tiers := []Policy{TokenBucket(Per(1, 700*time.Millisecond), 7), TokenBucket(Per(1, 90*time.Millisecond), 100), Unlimited(), Blocked()}
	quotas := []Policy{TokenBucket(Per(1, 1300*time.Millisecond), 4), TokenBucket(Per(1, 11*time.Millisecond), 1000), Unlimited(), Blocked()}
	buckets := func(p Policy, tiers []Policy, quotas []Policy, c ticker) modelKind {
		return modelKind{p, tiers, quotas, c, func() account { return &bucket{ticker: c} }}
	}
	return []modelKind{
		buckets(TokenBucket(PerSecond(1), 5), tiers, quotas, ticker{perNano: 1}),
		buckets(TokenBucket(Per(16, 15001*time.Nanosecond), 3), tiers, quotas, ticker{perNano: 16}),
		buckets(TokenBuckets(time.Hour), tiers, append(quotas, TokenBucket(PerSecond(1), 5), TokenBucket(Per(1, 90*time.Millisecond), 3)), ticker{perNano: 16}),
		buckets(TokenBucket(PerSecond(1), 5), nil,
			[]Policy{TokenBucket(PerSecond(1), 4), TokenBucket(PerSecond(1), 1000), Unlimited(), Blocked()}, ticker{perNano: 1}),
		modelKindOfBatches(7, 40),
	}
}

func modelKindOfBatches(limits ...uint64) modelKind {
	batches := func(burst uint64) Policy { return BatchRefill(3, time.Second, burst) }
	c, quotas := ticker{refill: 3, interval: int64(time.Second)}, []Policy{Blocked()}
	for _, limit := range limits {
		quotas = append(quotas, batches(limit))
	}
	return modelKind{batches(10), []Policy{batches(4), batches(25), Unlimited()}, quotas, c, func() account { return &bucket{ticker: c} }}
}

func modelKindOfWindows(policy func(limit uint64) Policy, of func() windowed) modelKind {
	return modelKind{policy(5), []Policy{policy(9), policy(3), Unlimited()}, []Policy{policy(7), policy(4), policy(1), Blocked()}, ticker{}, func() account {
		return &window{windowed: of()}
	}}
}

// without returns a copy of the kind without quotas, and without tiers if tiers is true.
func (kind modelKind) without(tiers bool) modelKind {
	if kind.quotas = nil; tiers {
		kind.tiers = nil
	}
	return kind
}

// modelLogSize is the highest limit of a log in the model.
const modelLogSize = 9

const modelWindow = 10 * time.Second

var (
	kindOfFixedWindows = modelKindOfWindows(func(n uint64) Policy { return FixedWindow(n, modelWindow) },
		func() windowed { return reference.NewFixedWindow(5, modelWindow, false) })
	kindOfSlidingWindows = modelKindOfWindows(func(n uint64) Policy { return SlidingWindow(n, modelWindow) },
		func() windowed { return reference.NewSlidingWindow(5, modelWindow) })
)

var modelKinds = append(modelKindsOfBuckets(),
	kindOfFixedWindows,
	modelKindOfWindows(func(n uint64) Policy { return FixedWindow(n, modelWindow).Aligned() },
		func() windowed { return reference.NewFixedWindow(5, modelWindow, true) }),
	kindOfSlidingWindows,
	modelKindOfWindows(func(n uint64) Policy { return SlidingLog(n, modelWindow) },
		func() windowed { return reference.NewSlidingLog(5, modelWindow) }),
	modelKindOfWindows(func(n uint64) Policy { return Concurrency(n, modelWindow) },
		func() windowed { return reference.NewConcurrency(5, modelWindow) }),
	modelKindOfBatches(7),
	modelKindOfWindows(func(n uint64) Policy { return CalendarWindow(n, Month, berlin) },
		func() windowed { return reference.NewCalendarWindow(5, months{}) }),
	kindOfFixedWindows.without(false), kindOfSlidingWindows.without(false), kindOfFixedWindows.without(true), kindOfSlidingWindows.without(true),
)

// berlin is a zone whose clocks are put forward and back, so that months are not whole numbers of days.
var berlin = func() *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return zone
}()

type months struct{}

func (months) End(nanos int64) int64 {
	year, month, _ := time.Unix(0, nanos).In(berlin).Date()
	return time.Date(year, month+1, 1, 0, 0, 0, 0, berlin).UnixNano()
}
