package script

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// The map each contains a limit of 10 for every algorithm. No tokens come back during a test.
var each = map[string]engine.Policy{
	"token bucket":   engine.TokenBucket(engine.Per(10, time.Hour), 10),
	"fixed window":   engine.FixedWindow(10, time.Hour),
	"aligned window": engine.FixedWindow(10, 365*24*time.Hour).Aligned(),
	"calendar":       engine.CalendarWindow(10, engine.Month, time.UTC),
	"sliding window": engine.SlidingWindow(10, 365*24*time.Hour),
	"sliding log":    engine.SlidingLog(10, time.Hour),
}

func limitOf(t testing.TB, p engine.Policy) *Limit {
	t.Helper()
	limit, err := NewLimit(p, Terms{})
	require.NoError(t, err)
	return limit
}

func dump(t testing.TB, c rueidis.Client, key string) string {
	t.Helper()
	text, err := c.Do(context.Background(), c.B().Dump().Key(key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return ""
	}
	require.NoError(t, err)
	return text
}

func ttl(t testing.TB, c rueidis.Client, key string) time.Duration {
	t.Helper()
	ms, err := c.Do(context.Background(), c.B().Pttl().Key(key).Build()).AsInt64()
	require.NoError(t, err)
	return time.Duration(ms) * time.Millisecond
}

func TestDecisions(t *testing.T) {
	c := start(t)
	for name, policy := range each {
		t.Run(name, func(t *testing.T) {
			p, remembered := limitOf(t, policy), uint64(20)
			if name == "sliding log" {
				remembered = 10
			}
			for i, step := range []struct {
				ask                Ask
				granted, remaining uint64
			}{
				{Ask{}, 0, 10}, // makes no key
				{strict(3), 3, 7},
				{Ask{Need: 1, Want: 100}, 1, 6}, // a quarter of 7, in whole tokens
				{Ask{Need: 2, Want: 100}, 2, 4}, // as much as is needed, if a quarter is less
				{strict(5), 0, 4},
				{Ask{Need: 4}, 0, 4}, // only checks whether 4 would fit
				{Ask{Need: 5}, 0, 4},
				{strict(4), 4, 0},
				{strict(1), 0, 0},
				{Ask{Returned: 5}, 0, 5},
				{Ask{Returned: 2, Debt: 4, Need: 3, Want: 3}, 3, 0},
				{Ask{Debt: 4}, 0, 0},
				{Ask{Returned: 4}, 0, 0}, // pays the debt, and nothing beyond it
				{Ask{Returned: 1}, 0, 1},
				{Ask{Debt: 1000}, 0, 0},
				{Ask{Returned: remembered}, 0, 0}, // as much debt as was remembered
				{Ask{Returned: 1}, 0, 1},
				{Ask{Returned: 1000}, 0, 10},
				{strict(10), 10, 0},
			} {
				step.ask.Window = one(t, p, c, name, Ask{}).Window
				before := dump(t, c, name)
				got := one(t, p, c, name, step.ask)
				assert.Equal(t, step.granted, got.Granted, "step %d: %+v", i, step.ask)
				assert.Equal(t, step.remaining, got.Remaining, "step %d: %+v", i, step.ask)
				if step.ask.Want > 0 {
					assert.Equal(t, got.Granted < step.ask.Need, got.RetryAfter > 0, "step %d: %+v", i, step.ask)
				} else if step.ask.Need > 0 {
					assert.Equal(t, got.Remaining < step.ask.Need, got.RetryAfter > 0, "step %d: %+v", i, step.ask)
					assert.Equal(t, before, dump(t, c, name), "a look changed a key")
				}
				if i == 0 {
					assert.Empty(t, dump(t, c, name), "a look made a key")
				}
			}
		})
	}
}

func TestRefusedConsumesNothing(t *testing.T) {
	c := start(t)
	for name, policy := range each {
		t.Run(name, func(t *testing.T) {
			p := limitOf(t, policy)
			got := one(t, p, c, name, strict(11)) // a first request above the limit
			assert.Zero(t, got.Granted)
			assert.Equal(t, engine.Never, got.RetryAfter)
			assert.Empty(t, dump(t, c, name), "a request that can never pass made a key")

			require.EqualValues(t, 8, one(t, p, c, name, strict(8)).Granted)
			before, life := dump(t, c, name), ttl(t, c, name)
			for _, n := range []uint64{3, 10, 11, 1 << 60} {
				got := one(t, p, c, name, strict(n))
				assert.Zero(t, got.Granted)
				assert.EqualValues(t, 2, got.Remaining)
				assert.Equal(t, n > 10, got.RetryAfter == engine.Never, n)
			}
			one(t, p, c, name, Ask{})
			assert.Equal(t, before, dump(t, c, name))
			assert.LessOrEqual(t, ttl(t, c, name), life, "a refused request made the key live longer")
			assert.EqualValues(t, 2, one(t, p, c, name, strict(2)).Granted)
		})
	}
}

func TestTimeToLive(t *testing.T) {
	c := start(t)
	for name, policy := range each {
		t.Run(name, func(t *testing.T) {
			p := limitOf(t, policy)
			for _, a := range []Ask{strict(1), {Need: 1, Want: 10}, {Returned: 1}, {Debt: 5}, {Debt: 100}, {Returned: 3}, strict(5)} {
				got := one(t, p, c, name, a)
				life := ttl(t, c, name)
				require.Positive(t, life, "%+v: the key has no time to live", a)
				// The server's clock has advanced since the answer, but by less than these five seconds.
				assert.GreaterOrEqual(t, life+5*time.Second, got.ResetAfter, "%+v", a)
				assert.GreaterOrEqual(t, life+5*time.Second, got.RetryAfter, "%+v", a)
			}
		})
	}
}

func TestNoScript(t *testing.T) {
	c := start(t)
	for name, policy := range each {
		p := limitOf(t, policy)
		for i := range 3 {
			require.NoError(t, c.Do(context.Background(), c.B().ScriptFlush().Build()).Error())
			assert.EqualValues(t, 9-i, one(t, p, c, name, strict(1)).Remaining, name)
		}
	}
}

func TestManyKeys(t *testing.T) {
	c := start(t)
	for name, policy := range each {
		p := limitOf(t, policy)
		keys, asks, answers := make([]string, MaxKeys), make([]Ask, MaxKeys), make([]Answer, MaxKeys)
		for i := range keys {
			keys[i], asks[i] = fmt.Sprintf("%s/%d", name, i/2), strict(uint64(i%2+i/16))
		}
		require.NoError(t, p.Run(context.Background(), c, keys, asks, answers))
		for i := range keys {
			left := 10 - asks[i].Need
			if i%2 == 1 {
				left -= asks[i-1].Need
			}
			assert.Equal(t, asks[i].Need, answers[i].Granted, "%s: %d", name, i)
			assert.Equal(t, left, answers[i].Remaining, "%s: %d", name, i)
		}
	}
}

func TestForeignValues(t *testing.T) {
	c, ctx := start(t), context.Background()
	for name, policy := range each {
		t.Run(name, func(t *testing.T) {
			p := limitOf(t, policy)
			for _, value := range []string{"", "hello", "1:2:3:4", "-5:-5", "nan:inf", ":", strings.Repeat("9", 400) + ":1", "1.5:1", "seven +7, times",
				"\x00\xff2-----\x00\x002-----\x00\xff2-----\x00\x00\x00\x00\x00\x00\x00"} {
				require.NoError(t, c.Do(ctx, c.B().Set().Key(name).Value(value).Build()).Error())
				for range 3 {
					one(t, p, c, name, strict(10))
					one(t, p, c, name, Ask{Returned: 1000, Window: one(t, p, c, name, Ask{}).Window})
					one(t, p, c, name, strict(1))
				}
				life := ttl(t, c, name)
				assert.True(t, life > 0 && life < 3*366*24*time.Hour, "%q: %v", value, life)
				require.NoError(t, c.Do(ctx, c.B().Del().Key(name).Build()).Error())
			}
			require.NoError(t, c.Do(ctx, c.B().Hset().Key(name).FieldValue().FieldValue("a", "b").Build()).Error())
			answers := make([]Answer, 3)
			require.NoError(t, p.Run(ctx, c, []string{name + "2", name, name + "3"}, []Ask{strict(1), strict(1), strict(2)}, answers))
			assert.Equal(t, Answer{Foreign: true}, answers[1], "a hash")
			assert.EqualValues(t, []uint64{1, 2}, []uint64{answers[0].Granted, answers[2].Granted}, "the keys beside it")
			kept, err := c.Do(ctx, c.B().Hget().Key(name).Field("a").Build()).ToString()
			require.NoError(t, err)
			assert.Equal(t, "b", kept)
		})
	}
}

// A real server and the model give the same answers to random questions under random quotas.
func TestQuotasOnAServer(t *testing.T) {
	c := start(t)
	for name, quotas := range map[string][]engine.Policy{
		"token bucket":   {engine.TokenBucket(engine.Per(10, time.Hour), 4), engine.TokenBucket(engine.Per(10, time.Hour), 1)},
		"fixed window":   {engine.FixedWindow(100, time.Hour), engine.FixedWindow(3, time.Hour)},
		"aligned window": {engine.FixedWindow(100, 365*24*time.Hour).Aligned(), engine.FixedWindow(3, 365*24*time.Hour).Aligned()},
		"calendar":       {engine.CalendarWindow(100, engine.Month, time.UTC), engine.CalendarWindow(3, engine.Month, time.UTC)},
		"sliding window": {engine.SlidingWindow(100, 365*24*time.Hour), engine.SlidingWindow(3, 365*24*time.Hour)},
		"sliding log":    {engine.SlidingLog(100, time.Hour), engine.SlidingLog(3, time.Hour)},
	} {
		for refusals := engine.ChargeNothing; refusals <= engine.ChargePenalty; refusals++ {
			t.Run(fmt.Sprint(name, refusals), func(t *testing.T) {
				terms := Terms{MaxDebt: 5, Refusals: refusals, MaxQuota: quotas[0].Limit()}
				if name == "token bucket" {
					terms.MaxQuota = 0
				}
				l, err := NewLimit(each[name], terms)
				require.NoError(t, err)
				all := []Quota{{}}
				for _, policy := range quotas {
					quota, err := l.Quota(each[name], policy)
					require.NoError(t, err)
					all = append(all, quota)
				}
				random := rand.New(rand.NewPCG(uint64(len(name)), uint64(refusals)))
				var m Model
				key := fmt.Sprint(name, refusals)
				for i := range 300 {
					a := Ask{Need: random.Uint64N(8), Quota: all[random.IntN(len(all))]}
					switch random.IntN(6) {
					case 0:
						a.Debt = random.Uint64N(40)
					case 1, 2:
						a.Returned, a.Window = random.Uint64N(40), one(t, l, c, key, Ask{}).Window
					default:
						a.Want = a.Need
					}
					got := one(t, l, c, key, a)
					if a.Returned > 0 {
						a.Window = m.copy().Ask(l, 1_800_000_000_000_000, Ask{}).Window
					}
					want := m.Ask(l, 1_800_000_000_000_000, a)
					require.Equal(t, want.Granted, got.Granted, "%d: %+v", i, a)
					require.Equal(t, want.Remaining, got.Remaining, "%d: %+v", i, a)
					require.Equal(t, want.RetryAfter > 0, got.RetryAfter > 0, "%d: %+v", i, a)
				}
			})
		}
	}
}
