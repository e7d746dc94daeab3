package httplimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
)

// TestTheExamplesOfTheDraft: the headers equal the examples of draft-ietf-httpapi-ratelimit-headers-10. Two examples
// are left out, because this module never writes such fields. The first has an r without a t. In the second
// ("somepolicy"), t is shorter than the time in which r tokens come back.
func TestTheExamplesOfTheDraft(t *testing.T) {
	minute := func(n uint64) engine.Policy { return engine.FixedWindow(n, time.Minute).Aligned() }
	type limit struct {
		name   string
		policy engine.Policy
		used   uint64 // tokens used before the request, which costs one
	}
	for _, c := range []struct {
		limits              []limit
		into                time.Duration // time since the window began
		policies, rateLimit string
		unit                string
	}{
		{limits: []limit{{"burst", minute(100), 0}, {"daily", engine.FixedWindow(1000, 24*time.Hour).Aligned(), 0}},
			policies: `"burst";q=100;w=60, "daily";q=1000;w=86400`},
		{limits: []limit{{"default", engine.TokenBucket(engine.PerSecond(10), 100), 0}}, policies: `"default";q=100;w=10`},
		{limits: []limit{{"permin", minute(50), 0}, {"perhr", engine.FixedWindow(1000, time.Hour).Aligned(), 0}},
			policies: `"permin";q=50;w=60, "perhr";q=1000;w=3600`},
		{limits: []limit{{"peruser", engine.FixedWindow(65535, 10*time.Second), 0}}, unit: "content-bytes",
			policies: `"peruser";q=65535;qu="content-bytes";w=10`},
		{limits: []limit{{"default", engine.TokenBucket(engine.Per(100, time.Minute), 100), 49}}, rateLimit: `"default";r=50;t=30`},
		{limits: []limit{{"default", minute(600_000_000), 299_999_999}}, rateLimit: `"default";r=300000000;t=60`},
		{limits: []limit{{"problemPolicy", minute(7), 7}}, into: 50 * time.Second, rateLimit: `"problemPolicy";r=0;t=10`},
		{limits: []limit{{"default", minute(2), 0}}, into: 53 * time.Second, rateLimit: `"default";r=1;t=7`},
		{limits: []limit{{"daily", engine.FixedWindow(2, 24*time.Hour).Aligned(), 0}}, into: 50_000 * time.Second,
			rateLimit: `"daily";r=1;t=36400`},
		{limits: []limit{{"default", minute(100), 99}}, into: 10 * time.Second, rateLimit: `"default";r=0;t=50`},
		{limits: []limit{{"default", minute(100), 100}}, into: 12 * time.Second, rateLimit: `"default";r=0;t=48`},
		{limits: []limit{{"dayLimit", engine.FixedWindow(5000, 24*time.Hour).Aligned(), 4899}, {"hour", engine.FixedWindow(1000, time.Hour), 0}},
			into: 14 * time.Hour, rateLimit: `"dayLimit";r=100;t=36000`},
		{limits: []limit{{"basic", minute(100), 39}}, into: 2 * time.Second, policies: `"basic";q=100;w=60`, rateLimit: `"basic";r=60;t=58`},
		{limits: []limit{{"basic", minute(100), 79}}, into: 4 * time.Second, policies: `"basic";q=100;w=60`, rateLimit: `"basic";r=20;t=56`},
		{limits: []limit{{"default", minute(9), 9}}, into: 55 * time.Second, rateLimit: `"default";r=0;t=5`},
		{limits: []limit{{"fixedwindow", minute(100), 0}}, into: 10 * time.Second, policies: `"fixedwindow";q=100;w=60`,
			rateLimit: `"fixedwindow";r=99;t=50`},
		{limits: []limit{{"dynamic", minute(100), 90}}, into: 10 * time.Second, policies: `"dynamic";q=100;w=60`, rateLimit: `"dynamic";r=9;t=50`},
		{limits: []limit{{"dynamic", engine.FixedWindow(15, 20*time.Second).Aligned(), 15}}, policies: `"dynamic";q=15;w=20`,
			rateLimit: `"dynamic";r=0;t=20`},
		{limits: []limit{{"dynamic", minute(100), 84}}, into: 20 * time.Second, policies: `"dynamic";q=100;w=60`, rateLimit: `"dynamic";r=15;t=40`},
	} {
		clock := testclock.New()
		const day = 24 * time.Hour
		clock.Advance(day - clock.Now().Sub(clock.Now().Truncate(day)) + c.into)
		var limits []httplimit.Limit
		for _, l := range c.limits {
			of := httplimit.Limit{Name: l.name, Limiter: clock.Limiter(t, l.policy), Key: httplimit.Everyone, Unit: c.unit}
			of.Limiter.Charge(of.Limiter.KeyUint64(0), l.used)
			limits = append(limits, of)
		}
		m := newMiddleware(t, limits, httplimit.Clock(clock.Now))
		got := serve(m.Handler(hello), get("/")).Header()
		for name, want := range map[string]string{"RateLimit-Policy": c.policies, "RateLimit": c.rateLimit} {
			if want != "" {
				assert.Equal(t, parseList(t, []string{want}), parseList(t, got.Values(name)), "%+v", c.limits)
			}
		}
	}
}
