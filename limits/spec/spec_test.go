package spec

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

func of(t *testing.T, a engine.Algorithm, rate string) Limit {
	t.Helper()
	r, err := ParseRate(rate)
	require.NoError(t, err)
	return Limit{Algorithm: a, Numbers: Numbers{Rate: r}}
}

// TestAlgorithmNames: ParseAlgorithm reads each name back, and refuses every other text.
func TestAlgorithmNames(t *testing.T) {
	for _, a := range Algorithms() {
		again, err := ParseAlgorithm(Name(a))
		require.NoError(t, err)
		assert.Equal(t, a, again)
	}
	for _, text := range []string{"token bucket", "Token-Bucket", "bucket", Name(engine.AlgorithmConcurrency), Name(200)} {
		_, err := ParseAlgorithm(text)
		assert.ErrorContains(t, err, "want token-bucket, batch-refill")
	}
	assert.Empty(t, Name(engine.NoAlgorithm))
}

func ptr(n uint64) *uint64 { return &n }

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		algorithm engine.Algorithm
		rate      string
		burst     *uint64
		want      engine.Policy
	}{
		{engine.NoAlgorithm, "10/m", nil, engine.TokenBucket(engine.Per(10, time.Minute), 10)},
		{engine.AlgorithmTokenBucket, "0.5/s", nil, engine.TokenBucket(engine.PerSecond(0.5), 1)},
		{engine.AlgorithmTokenBucket, "2.5/s", nil, engine.TokenBucket(engine.PerSecond(2.5), 3)},
		{engine.AlgorithmTokenBucket, "2.5/s", ptr(7), engine.TokenBucket(engine.PerSecond(2.5), 7)},
		{engine.AlgorithmBatchRefill, "10/1500ms", ptr(7), engine.BatchRefill(10, 1500*time.Millisecond, 7)},
		{engine.AlgorithmFixedWindow, "3/d", nil, engine.FixedWindow(3, 24*time.Hour)},
		{engine.AlgorithmSlidingWindow, "100/7d", nil, engine.SlidingWindow(100, 7*24*time.Hour)},
		{engine.AlgorithmSlidingLog, "1e3/1h30m", nil, engine.SlidingLog(1000, 90*time.Minute)},
		{engine.AlgorithmFixedWindow, "3/day", nil, engine.CalendarWindow(3, engine.Day, nil)},
		{engine.AlgorithmFixedWindow, "3/week", nil, engine.CalendarWindow(3, engine.Week, nil)},
		{engine.AlgorithmFixedWindow, "4e3/month", nil, engine.CalendarWindow(4000, engine.Month, nil)},
		{engine.AlgorithmSlidingLog, "0", nil, engine.Blocked()},
		{engine.NoAlgorithm, "unlimited", nil, engine.Unlimited()},
	} {
		l := of(t, c.algorithm, c.rate)
		l.Burst = c.burst
		got, err := l.Policy()
		require.NoError(t, err, c.rate)
		assert.Equal(t, c.want, got, c.rate)
		assert.Equal(t, !l.Rate.IsFixed(), l.Counts())
	}
	l := of(t, engine.AlgorithmFixedWindow, "3/d")
	l.Aligned = true
	got, err := l.Policy()
	require.NoError(t, err)
	assert.Equal(t, engine.FixedWindow(3, 24*time.Hour).Aligned(), got)

	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	l = of(t, engine.AlgorithmFixedWindow, "3/month")
	l.Zone = "Europe/Berlin"
	more, err := ParseRate("9/month")
	require.NoError(t, err)
	l.Tiers = []Tier{{"a", Numbers{Rate: more}}}
	own, tiers, err := l.Policies()
	require.NoError(t, err)
	assert.Equal(t, engine.CalendarWindow(3, engine.Month, berlin), own)
	assert.Equal(t, []engine.Policy{engine.CalendarWindow(9, engine.Month, berlin)}, tiers)

	flights := Limit{Numbers: Numbers{Concurrency: 5}, Tiers: []Tier{{"a", Numbers{Concurrency: 9}}}}
	own, tiers, err = flights.Policies()
	require.NoError(t, err)
	assert.Equal(t, engine.Concurrency(5, InFlight), own)
	assert.Equal(t, []engine.Policy{engine.Concurrency(9, InFlight)}, tiers)
}

// TestTiers: a tier takes missing numbers from the limit. A tier that needs no counting fits any limit.
func TestTiers(t *testing.T) {
	l := of(t, engine.AlgorithmTokenBucket, "10/s")
	l.Tiers = []Tier{{"a", Numbers{Burst: ptr(3)}}, {"b", Numbers{Rate: Of(engine.PerSecond(1))}}}
	for range 20 {
		l.Tiers = append(l.Tiers, Tier{"c", Numbers{Rate: Unlimited}})
	}
	_, tiers, err := l.Policies()
	require.NoError(t, err)
	assert.Equal(t, engine.TokenBucket(engine.PerSecond(10), 3), tiers[0])
	assert.Equal(t, engine.TokenBucket(engine.PerSecond(1), 1), tiers[1])
	own := l
	own.Burst = ptr(20)
	_, tiers, err = own.Policies()
	require.NoError(t, err)
	assert.Equal(t, engine.TokenBucket(engine.PerSecond(1), 20), tiers[1], "the limit's burst")
	assert.Equal(t, engine.Unlimited(), tiers[21])

	l = of(t, engine.AlgorithmSlidingWindow, "0")
	l.Tiers = []Tier{{"a", Numbers{Rate: Of(engine.PerSecond(1))}}, {"b", Numbers{Rate: Of(engine.Per(1, time.Minute))}}}
	assert.True(t, l.Counts())
	_, _, err = l.Policies()
	require.ErrorContains(t, err, "sliding window", "two periods in one limiter")
}

// TestWhatDoesNotFit: one call reports all mistakes, each with its key and tier.
func TestWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		limit func(l *Limit)
		rate  string
		want  []Error
	}{
		{func(l *Limit) { l.Rate = Rate{} }, "1/s", []Error{{"", "rate", "it has neither a rate, such as 10/s, nor a concurrency"}}},
		{func(l *Limit) { l.Concurrency = 3 }, "1/s", []Error{{"", "concurrency", "concurrency 3: the limit has a rate, too: write a second limit for the concurrency"}}},
		{func(l *Limit) {
			l.Rate, l.Concurrency, l.Algorithm, l.Aligned, l.Burst, l.Refund = Rate{}, 3, engine.AlgorithmFixedWindow, true, ptr(2), true
		}, "1/s", []Error{
			{"", "algorithm", "algorithm: it needs a rate, and the limit has none: leave it out"},
			{"", "burst", "burst: it needs a rate, and the limit has none: leave it out"},
			{"", "aligned", "aligned: it needs a rate, and the limit has none: leave it out"},
			{"", "refund_status", "refund_status: requests in flight are given back whatever their status: leave this out"},
		}},
		{func(l *Limit) { l.Algorithm, l.Burst = engine.AlgorithmSlidingLog, ptr(5) }, "0.5/s", []Error{
			{"", "burst", "burst 5: a sliding-log has none, because all of its limit, 0.5/s, may come at once: leave it out, or use the " +
				"algorithm token-bucket"},
			{"", "rate", "rate 0.5/s: a sliding-log wants a whole number of requests: write one, in a longer period, such as 1/2s"},
		}},
		{func(l *Limit) { l.Aligned, l.Burst = true, ptr(0) }, "1/s", []Error{
			{"", "burst", "burst 0: want 1 to 4294967296"},
			{"", "aligned", "aligned: a token-bucket has no windows of the clock: leave it out, or use the algorithm fixed-window"},
		}},
		{func(l *Limit) { l.Aligned, l.Burst = true, ptr(2) }, "unlimited", []Error{
			{"", "burst", "burst 2: a rate of unlimited has none: leave it out"},
			{"", "aligned", "aligned: a rate of unlimited has no window: leave it out"},
		}},
		{func(l *Limit) { l.MaxWait, l.Algorithm = time.Hour, engine.AlgorithmFixedWindow }, "1/s", []Error{
			{"", "max_wait", "max_wait 1h0m0s: want 1ms to 1m0s"},
			{"", "max_wait", "max_wait: requests can wait only for a token-bucket, and this is a fixed-window: leave it out"},
		}},
		{func(l *Limit) { l.Stored, l.MaxWait = true, time.Second }, "1/s", []Error{
			{"", "store", "requests cannot wait for tokens of a store (max_wait)"}}},
		{func(l *Limit) { l.Stored, l.Algorithm = true, engine.AlgorithmBatchRefill }, "1/s", []Error{
			{"", "store", "a store does not keep batches (batch-refill)"}}},
		{func(l *Limit) { l.Stored, l.Overflow = true, engine.Admit }, "1/s", []Error{
			{"", "store", "a store has room for every key and no overflow (overflow: admit)"}}},
		{func(l *Limit) { l.Cost = 11 }, "10/s", []Error{{"", "cost", "cost 11 is above the limit, 10: such a request could never pass"}}},
		{func(l *Limit) { l.Cost, l.Tiers = 3, []Tier{{"a", Numbers{Burst: ptr(2)}}} }, "10/s", []Error{
			{"", "cost", `cost 3 is above the limit of tier "a", 2: such a request could never pass`}}},
		{func(l *Limit) {
			l.Algorithm = engine.AlgorithmFixedWindow
			l.Tiers = []Tier{{"a", Numbers{}}, {"b", Numbers{Rate: Of(engine.Per(1, time.Hour))}}, {"c", Numbers{Concurrency: 1}}}
		}, "10/s", []Error{
			{"a", "", "neither rate nor burst"},
			{"b", "rate", "all limits of a fixed-window have one period: write the rate as so many in the period of 10/s"},
			{"c", "concurrency", "a concurrency, and the limit has none"},
		}},
		{func(l *Limit) {
			l.Algorithm, l.Tiers = engine.AlgorithmBatchRefill, []Tier{{"b", Numbers{Rate: Of(engine.PerSecond(1))}}}
		}, "10/s", []Error{{"b", "rate", "all limits of a batch-refill have one rate, 10/s: write a burst alone"}}},
		{func(l *Limit) { l.Tiers = []Tier{{"a", Numbers{Burst: ptr(2)}}} }, "0", []Error{
			{"a", "", "no rate, and the limit's own is 0: write one"}}},
		{func(l *Limit) { l.Rate, l.Concurrency, l.Tiers = Rate{}, 1, []Tier{{"a", Numbers{Burst: ptr(2)}}} }, "0", []Error{
			{"a", "concurrency", "no concurrency, and the limit has no rate"}}},
		{func(l *Limit) { l.Algorithm = engine.AlgorithmSlidingLog }, "5000/m", []Error{
			{"", "rate", "sliding log 5000/1m0s: limit of 5000 tokens every 1m0s: want 1 to 4096 tokens"}}},
		{func(l *Limit) {}, "5/month", []Error{{"", "rate", "rate 5/month: a month of the calendar needs the algorithm fixed-window: use it, or write the rate of a token-bucket in d or h"}}},
		{func(l *Limit) {
			l.Algorithm, l.Aligned, l.Burst, l.Zone = engine.AlgorithmFixedWindow, true, ptr(3), "Mars/Base"
		}, "0.5/day", []Error{
			{"", "burst", "burst 3: a fixed-window has none, because all of its limit, 0.5/day, may come at once: leave it out"},
			{"", "rate", "rate 0.5/day: want a whole number in a day of the calendar"},
			{"", "aligned", "aligned: a day of the calendar begins with its first day: leave it out"},
			{"", "zone", `zone "Mars/Base": want a name of the tz database, such as UTC or Europe/Berlin`},
		}},
		{func(l *Limit) { l.Algorithm, l.Zone = engine.AlgorithmFixedWindow, "Local" }, "5/day", []Error{
			{"", "zone", `zone "Local": want a name of the tz database, such as UTC or Europe/Berlin`}}},
		{func(l *Limit) { l.Zone = "UTC" }, "5/d", []Error{
			{"", "zone", "zone: it needs a rate in a day, week or month of the calendar, such as 1000/month: leave it out"}}},
		{func(l *Limit) {
			l.Algorithm, l.Tiers = engine.AlgorithmFixedWindow, []Tier{{"a", Numbers{Rate: Of(engine.Per(5, 31*24*time.Hour))}}}
		}, "5/month", []Error{
			{"a", "rate", "all limits of a fixed-window have one period: write the rate as so many in the period of 5/month"}}},
		{func(l *Limit) { l.Algorithm = engine.AlgorithmFixedWindow }, "5e9/month", []Error{
			{"", "rate", "fixed window 5000000000/month of UTC: limit of 5000000000 tokens every 744h0m0s: want 1 to 4294967296 tokens"}}},
		{func(l *Limit) {
			l.Tiers = make([]Tier, 15)
			fill(l.Tiers)
			l.Tiers[14] = Tier{"slow", Numbers{Rate: Of(engine.Per(1, 24*time.Hour)), Burst: ptr(1000)}}
		}, "10/s", []Error{{"slow", "rate", "burst of 1000 tokens at 1 tokens every 24h0m0s: on the " +
			"table's clock, whose tick is 1.000 ns, want at most 26"}}},
		{func(l *Limit) { l.Quota, l.Spread = 10, true }, "10/s", []Error{
			{"", "quota", "quota: the limit has a spread, and one bucket has one limit: leave one of the two out"}}},
		{func(l *Limit) { l.Quota = 10 }, "0", []Error{
			{"", "quota", "a rate of 0 without a plan that counts leaves nothing to count: write a plan with a rate"}}},
		{func(l *Limit) {
			l.Quota, l.Tiers = 10, []Tier{{"a", Numbers{Rate: perSecond(11)}}, {"b", Numbers{Rate: perSecond(10)}}}
		}, "1/s", []Error{
			{"a", "rate", "limit of 11 tokens: want at most 10, the max"}}},
		{func(l *Limit) { l.Quota, l.Cost, l.Tiers = 10, 3, []Tier{{"a", Numbers{Rate: perSecond(2)}}} }, "3/s", []Error{
			{"a", "rate", "limit of 2 tokens: a request may cost 3, and could never pass"}}},
	} {
		l := of(t, engine.NoAlgorithm, c.rate)
		c.limit(&l)
		_, _, err := l.Policies()
		var got []Error
		for _, e := range ErrorsOf(err) {
			got = append(got, *e)
		}
		assert.Equal(t, c.want, got)
		require.Error(t, err)
	}
	assert.Equal(t, `tier "a": b`, (&Error{"a", "rate", "b"}).Error())
	assert.Empty(t, ErrorsOf(nil))
}

func perSecond(n float64) Rate { return Of(engine.PerSecond(n)) }

func fill(tiers []Tier) {
	for i := range tiers {
		tiers[i].Burst = ptr(2)
	}
}

func TestEveryAlgorithmIsKnownByItsName(t *testing.T) {
	assert.Equal(t, "token-bucket, batch-refill, fixed-window, sliding-window or sliding-log", List())
	for _, a := range Algorithms() {
		parsed, err := ParseAlgorithm(Name(a))
		require.NoError(t, err)
		assert.Equal(t, a, parsed)
		l := of(t, a, "1/s")
		p, err := l.Policy()
		require.NoError(t, err, "an algorithm that the numbers do not know: %v", a)
		assert.Equal(t, a, p.Algorithm())
		assert.NotEqual(t, traits{}, traitsOf(a), "%v: nothing is said about how its numbers are written", a)
	}
	for _, bad := range []string{"leaky", "Fixed", "concurrency"} {
		_, err := ParseAlgorithm(bad)
		require.ErrorContains(t, err, bad+`": want token-bucket, batch-refill`)
	}
}

func TestRatesOfTheCalendar(t *testing.T) {
	for _, text := range []string{"100/day", "3/week", "4294967296/month"} {
		r, err := ParseRate(text)
		require.NoError(t, err)
		assert.Equal(t, strings.Replace(text, "4294967296", "4.294967296e+09", 1), r.String())
		_, ok := r.Calendar()
		assert.True(t, ok)
	}
	for text, want := range map[string]string{
		"1/year":    `rate "1/year": "year" is not a period: want ms, s, m, h, d, a duration such as 1500ms, or the day, week or month of the calendar`,
		"x/month":   `rate "x/month": want a number of tokens up to 1e9 a second, such as 1000/month`,
		"1e20/week": `rate "1e20/week": want a number of tokens`,
		"5":         `rate "5": want tokens/period`,
	} {
		_, err := ParseRate(text)
		require.ErrorContains(t, err, want)
	}
}

func TestWhole(t *testing.T) {
	for _, text := range []string{"3/ms", "3/7d", "3e0/10us", "3/2540400h", "1e9/s", "9007199254740993/365d"} {
		r, err := engine.ParseRate(text)
		require.NoError(t, err)
		assert.Empty(t, wholeRemedy(r), text)
	}
	for text, hint := range map[string]string{
		"0.5/s": "such as 1/2s", "2.5/m": "such as 5/2m0s", "0.7/1500ms": "such as 7/15s", "1.23e-8/s": "in a longer period",
	} {
		r, err := engine.ParseRate(text)
		require.NoError(t, err)
		assert.Contains(t, wholeRemedy(r), hint, text)
	}
}
