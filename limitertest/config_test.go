package limitertest

import (
	"math"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func plainBucket(_ testing.TB, l Limit) Limiter { return newBucket(l, "") }

// TestBadConfigs: for each wrong Config, the error names the mistake.
func TestBadConfigs(t *testing.T) {
	for says, c := range map[string]Config{
		"New is nil":                           {},
		"Keys is -1: want 0 to":                {New: plainBucket, Keys: -1},
		"RetryUnit is -1ns":                    {New: plainBucket, RetryUnit: -1},
		"Limits: check: 0 tokens":              {New: plainBucket, Limits: []Limit{{Tokens: 0, Per: 1, Burst: 1}}},
		`Skip: there is no subtest "burst"`:    {New: plainBucket, Skip: map[string]string{"burst": "x"}},
		"Skip: Leak has no reason":             {New: plainBucket, Skip: map[string]string{"Leak": ""}},
		"promise 77: want one below":           {New: plainBucket, Promise: 77},
		"Limits: check: a period of 0s: want ": {New: plainBucket, Limits: []Limit{{Tokens: 1, Per: 0, Burst: 1}}},
	} {
		assert.ErrorContains(t, c.check(), says)
	}
	require.NoError(t, Config{New: plainBucket, Skip: map[string]string{"Leak": "never closed"}}.check())
}

// TestWhatIsSkippedSaysSo: the output names each subtest that does not run, with the reason.
func TestWhatIsSkippedSaysSo(t *testing.T) {
	if os.Getenv("LIMITERTEST_SKIPS") != "" {
		limiter := func(tb testing.TB, l Limit) Limiter {
			if l.Per < time.Hour {
				return nil
			}
			return alignedWindow(l)
		}
		t.Run("inside", func(t *testing.T) {
			Test(t, Config{New: limiter, Promise: AlignedWindow, Keys: 100, Skip: map[string]string{"Real": "the reason"}})
		})
		t.Run("outside", func(t *testing.T) {
			Test(t, Config{New: plainBucket, Keys: 100, Outside: true, Limits: []Limit{{Tokens: 5, Per: 24 * time.Hour, Burst: 5}}})
		})
		return
	}
	run := exec.Command(os.Args[0], "-test.run", "^TestWhatIsSkippedSaysSo$", "-test.v")
	run.Env = append(os.Environ(), "LIMITERTEST_SKIPS=1")
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, says := range []string{
		"not promised: the reason", "SKIP: TestWhatIsSkippedSaysSo/inside/Real ", "the limiter has no Refund, Reserve or Wait",
		"New has no limiter for 10 in 1s, burst 20",
		"the limiter's time is not package time (Config.Outside)", "SKIP: TestWhatIsSkippedSaysSo/outside/Bound",
		"PASS: TestWhatIsSkippedSaysSo/outside/Burst", "PASS: TestWhatIsSkippedSaysSo/outside/Real",
	} {
		assert.Contains(t, string(out), says)
	}
}

// broken has limiters and Configs that cannot be tested, each with the message of the failing test.
var broken = map[string]struct {
	config Config
	says   string
}{
	"New panics":  {Config{New: func(testing.TB, Limit) Limiter { panic("boom") }}, "New(1 in 24h0m0s, burst 1) panicked: boom"},
	"New blocks":  {Config{New: func(testing.TB, Limit) Limiter { select {} }}, "a call never returns"},
	"nil pointer": {Config{New: func(testing.TB, Limit) Limiter { return (*bucket)(nil) }}, `Take("k", 1) panicked: runtime error`},
	"Take panics": {Config{New: func(testing.TB, Limit) Limiter {
		return TakeFunc(func(string, int64) Decision { panic("boom") })
	}}, `Take("k", 1) panicked: boom`},
	"Take blocks": {Config{New: func(testing.TB, Limit) Limiter {
		return TakeFunc(func(string, int64) Decision { select {} })
	}}, "a call never returns"},
	"early": {Config{New: plainBucket, EarlyBy: func(Limit) time.Duration { return -time.Hour }},
		"Config.EarlyBy(1 in 24h0m0s, burst 1) is -1h0m0s: want 0 to 87600h0m0s"},
	"late": {Config{New: plainBucket, LateBy: func(Limit) time.Duration { return math.MaxInt64 }},
		"Config.LateBy(1 in 24h0m0s, burst 1) is 2562047h47m16.854775807s: want 0 to 87600h0m0s"},
	"too long": {Config{New: plainBucket, Limits: []Limit{{Tokens: 1, Per: 100 * 365 * day, Burst: 1}}},
		"no limit can be waited for: 1 in 876000h0m0s, burst 1 fills a key in 876000h0m0s, and a subtest can wait for 657000h0m0s"},
}

// TestWhatIsBrokenSaysSo: a broken configuration fails with a message that names the mistake. The process continues,
// and no further subtests run.
func TestWhatIsBrokenSaysSo(t *testing.T) {
	if name := os.Getenv("LIMITERTEST_BROKEN"); name != "" {
		Test(t, broken[name].config)
		return
	}
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			run := exec.Command(os.Args[0], "-test.run", "^TestWhatIsBrokenSaysSo$", "-test.v")
			run.Env = append(os.Environ(), "LIMITERTEST_BROKEN="+name)
			out, err := run.CombinedOutput()
			assert.Error(t, err)
			assert.Contains(t, string(out), b.says)
			assert.NotContains(t, string(out), "\npanic: ")
			assert.NotContains(t, string(out), "TestWhatIsBrokenSaysSo/Burst", "nothing more is tried")
		})
	}
}

// TestParallelTestsHaveNoMemory: Leak is skipped if other tests run in parallel, because the memory of these tests
// would count.
func TestParallelTestsHaveNoMemory(t *testing.T) {
	if os.Getenv("LIMITERTEST_PARALLEL") != "" {
		t.Parallel()
		Test(t, Config{New: plainBucket, Keys: 100, Limits: []Limit{{Tokens: 10, Per: time.Second, Burst: 20}}})
		return
	}
	run := exec.Command(os.Args[0], "-test.run", "^TestParallelTestsHaveNoMemory$", "-test.v", "-test.short")
	run.Env = append(os.Environ(), "LIMITERTEST_PARALLEL=1")
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "memory is not measured, because other tests run in parallel")
}

// TestABurstThatCannotBeCounted: no subtest takes the tokens of a large bucket one by one.
func TestABurstThatCannotBeCounted(t *testing.T) {
	Test(t, Config{Keys: 100, New: plainBucket, Limits: []Limit{{Tokens: 1 << 60, Per: time.Second, Burst: 1 << 60}},
		Skip: map[string]string{"Real": "the limit is not", "Leak": "the limit is not"}})
}

// TestTheMostInATime compares the bound that Real uses with numbers that were computed by hand.
func TestTheMostInATime(t *testing.T) {
	l := Limit{Tokens: 10, Per: time.Second, Burst: 5}
	for promise, want := range map[Promise]int64{Bucket: 5 + 25, LeakyQueue: 5 + 25, BatchRefill: 5 + 30, FixedWindow: 40,
		AlignedWindow: 40, SlidingEstimate: 40, SlidingExact: 40} {
		s := &suite{Config: Config{Promise: promise}}
		assert.Equal(t, want, s.maxTokensIn(l, 2500*time.Millisecond).Int64(), promise)
	}
	s := &suite{Config: Config{EarlyBy: func(Limit) time.Duration { return time.Second }}}
	assert.Equal(t, int64(15), s.maxTokensIn(l, 0).Int64())
	assert.Equal(t, time.Second, refill(Limit{Tokens: 10, Per: time.Second, Burst: 10}, Bucket))
	assert.Equal(t, time.Duration(math.MaxInt64), refill(Limit{Tokens: 1, Per: math.MaxInt64, Burst: 2}, Bucket))
}

// TestTheDensestInterval: over the complete time, the calls stay within the limit. After a pause, they exceed it.
// densest must find the interval after the pause.
func TestTheDensestInterval(t *testing.T) {
	l, s := Limit{Tokens: 1000, Per: time.Second, Burst: 50}, &suite{}
	var all callLog
	for begin, n := range map[time.Duration]int{0: 50, 90 * time.Millisecond: 80} {
		for i := range n {
			start := begin + time.Duration(i)*time.Microsecond
			all.starts, all.ends = append(all.starts, start), append(all.ends, start+500*time.Nanosecond)
		}
	}
	slices.Sort(all.starts)
	slices.Sort(all.ends)
	assert.Less(t, int64(len(all.starts)), s.maxTokensIn(l, 91*time.Millisecond).Int64())
	n, within := all.densest(l)
	assert.Equal(t, 80, n)
	assert.Equal(t, 79*time.Microsecond+500*time.Nanosecond, within)

	// Calls that began before the interval may have been admitted before the interval, so they do not count.
	all = callLog{starts: []time.Duration{0, 1, 2}, ends: []time.Duration{10, 20, 30}}
	n, within = all.densest(l)
	assert.Equal(t, 3, n)
	assert.Equal(t, 30*time.Nanosecond, within)
	n, _ = callLog{}.densest(l)
	assert.Zero(t, n)
}

// TestCheckIsThatOfPackageCheck: a log can be checked without a test.
func TestCheckIsThatOfPackageCheck(t *testing.T) {
	r, err := Check(Limit{Tokens: 1, Per: time.Second, Burst: 1}, Bucket, []Event{{N: 2, Allowed: true}})
	require.NoError(t, err)
	assert.Equal(t, uint64(1), r.Excess)
	_, err = Check(Limit{}, Bucket, nil)
	assert.ErrorContains(t, err, "0 tokens")
}

type movedBucket struct {
	TakeFunc
	at atomic.Int64
}

func newMovedBucket(l Limit, round time.Duration) Limiter {
	b, m := newBucket(l, ""), &movedBucket{}
	m.at.Store(time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC).UnixNano())
	m.TakeFunc = func(key string, n int64) Decision { return b.TakeAt(key, n, m.Now().Add(round-1).Truncate(round)) }
	return m
}

func (m *movedBucket) Now() time.Time          { return time.Unix(0, m.at.Load()) }
func (m *movedBucket) Advance(d time.Duration) { m.at.Add(int64(d)) }

// TestClockedLimiters: if a limiter has its own clock, Test moves this clock, and does not use a bubble.
func TestClockedLimiters(t *testing.T) {
	if os.Getenv("LIMITERTEST_CLOCKED") != "" {
		Test(t, Config{Outside: true, Keys: 500, Limits: []Limit{{Tokens: 10, Per: time.Second, Burst: 20}},
			New: func(_ testing.TB, l Limit) Limiter { return newMovedBucket(l, 1) }})
		return
	}
	run := exec.Command(os.Args[0], "-test.run", "^TestClockedLimiters$", "-test.v")
	run.Env = append(os.Environ(), "LIMITERTEST_CLOCKED=1")
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"Burst", "Bound", "Conforming", "Keys", "Forget", "Costs", "Retry", "Clock", "Linear", "Leak"} {
		assert.Contains(t, string(out), "PASS: TestClockedLimiters/"+name)
	}
	assert.Contains(t, string(out), "SKIP: TestClockedLimiters/Real")
}
