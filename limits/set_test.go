package limits_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// TestBadInput: New returns an error that names the limit, the value and the range.
func TestBadInput(t *testing.T) {
	c := testclock.New()
	_, good := inMemory(t, c, "good", 1)
	_, remote := stored(t, c, &database{}, "remote", 1)
	spread := limits.Limit[int]{Name: "spread", Spread: c.Spread(t, engine.TokenBucket(engine.PerSecond(1), 1))}
	for want, change := range map[string]func(*limits.Limit[int]){
		`limit 1 of 1, "": the name goes into answers`: func(l *limits.Limit[int]) { l.Name = "" },
		"unit \"é\" goes into answers":                 func(l *limits.Limit[int]) { l.Unit = "é" },
		"it has no Key":                                func(l *limits.Limit[int]) { l.Key = nil },
		"neither a Limiter nor a Source":               func(l *limits.Limit[int]) { l.Limiter = nil },
		"a MaxWait of -1s":                             func(l *limits.Limit[int]) { l.MaxWait = -time.Second },
		"OnLoss is 1 but Source is nil":                func(l *limits.Limit[int]) { l.OnLoss = limits.Closed },
		"an OnLoss of 3: want Open, Closed or Loca":    func(l *limits.Limit[int]) { l.OnLoss = 3 },
		"Hold and MaxWait are both set":                func(l *limits.Limit[int]) { l.Hold, l.MaxWait = true, time.Second },
		"requests cannot wait for tokens of a Source":  func(l *limits.Limit[int]) { *l = remote; l.MaxWait = time.Second },
		"has no holds, but Hold is set":                func(l *limits.Limit[int]) { *l = remote; l.Hold = true },
		"has no tiers":                                 func(l *limits.Limit[int]) { *l = remote; l.Tier = func(int) int { return 0 } },
		"no Limiter to fall back to":                   func(l *limits.Limit[int]) { *l = remote; l.OnLoss = limits.Local },
		"only Local uses both":                         func(l *limits.Limit[int]) { l.Source, l.OnLoss = remote.Source, limits.Closed },
		"a Spread and also a Limiter or a Source":      func(l *limits.Limit[int]) { l.Spread = spread.Spread },
		"one bucket for all requests, but Key is set":  func(l *limits.Limit[int]) { l.Limiter, l.Spread = nil, spread.Spread },
		"one limit for all requests, but Quota is set": func(l *limits.Limit[int]) {
			*l = spread
			l.Quota = func(int) (engine.Policy, error) { return engine.Blocked(), nil }
		},
		"requests cannot wait for tokens of a Spread": func(l *limits.Limit[int]) { *l = spread; l.MaxWait = time.Second },
		"Hold is set, but a Spread gives back only":   func(l *limits.Limit[int]) { *l = spread; l.Hold = true },
		"Refund is set, but a Spread gives back only": func(l *limits.Limit[int]) { *l = spread; l.Refund = func(int, int) bool { return true } },
	} {
		l := good
		change(&l)
		_, err := limits.New([]limits.Limit[int]{l}, limits.Options[int]{})
		assert.ErrorContains(t, err, want)
	}
	for want, o := range map[string]limits.Options[int]{
		"MaxWaiting is -1: want 1 or more": {MaxWaiting: -1},
		"Jitter is -1ns: want 0 to 1h":     {Jitter: -1},
		"Jitter is 2h0m0s: want 0 to 1h":   {Jitter: 2 * time.Hour},
	} {
		_, err := limits.New([]limits.Limit[int]{good}, o)
		assert.ErrorContains(t, err, want)
	}
	_, err := limits.New[int](nil, limits.Options[int]{})
	assert.ErrorContains(t, err, "no limits: want at least one")
	_, err = limits.New([]limits.Limit[int]{good, good}, limits.Options[int]{})
	assert.ErrorContains(t, err, `limits 1 and 2 of 2 have the same name, "good"`)
}

// TestMoreLimitsThanAResultHolds: limits for which a result has no inline room take and give back as all limits do.
func TestMoreLimitsThanAResultHolds(t *testing.T) {
	c := testclock.New()
	var list []limits.Limit[int]
	for i := range 12 {
		_, l := inMemory(t, c, strings.Repeat("x", i+1), uint64(20-i))
		list = append(list, l)
	}
	s, _ := newSet(t, list...)
	for range 9 {
		res := s.Decide(t.Context(), 0)
		require.True(t, res.Allowed())
	}
	res := s.Decide(t.Context(), 0)
	tightest, ok := res.Tightest()
	require.True(t, ok)
	assert.Equal(t, 12, len(tightest.Name()))
	assert.Equal(t, 11, tightest.Index())
	for i, l := range list {
		assert.EqualValues(t, 20-i-9, l.Limiter.Peek(l.Limiter.KeyUint64(0), 0).Remaining)
	}
}

// TestADecisionDoesNotAllocate: neither an admission nor a refusal allocates, for up to eight limits.
func TestADecisionDoesNotAllocate(t *testing.T) {
	c := testclock.New()
	var list []limits.Limit[int]
	for i := range 8 {
		_, l := inMemory(t, c, strings.Repeat("x", i+1), 1<<32)
		list = append(list, l)
	}
	s, _ := newSet(t, list...)
	assert.Zero(t, testalloc.PerCall(func() {
		var res limits.Result[int]
		s.DecideInto(&res, t.Context(), 0)
	}))
	list[7].Limiter = c.Limiter(t, engine.Blocked())
	s, _ = newSet(t, list...)
	assert.Zero(t, testalloc.PerCall(func() {
		var res limits.Result[int]
		s.DecideInto(&res, t.Context(), 0)
	}))
}
