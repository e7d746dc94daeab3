package limit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

func parse(t *testing.T, args string) (*Flags, error) {
	t.Helper()
	var command struct{ Flags }
	parser, err := kong.New(&command, kong.Vars{"algorithms": spec.List()}, kong.Exit(func(int) { t.Fatal("exit") }))
	require.NoError(t, err)
	_, err = parser.Parse(strings.Fields(args))
	return &command.Flags, err
}

func TestPolicyOfTheFlags(t *testing.T) {
	for args, want := range map[string]engine.Policy{
		"":                        engine.TokenBucket(engine.PerSecond(1), 1),
		"--limit 10/m":            engine.TokenBucket(engine.Per(10, time.Minute), 10),
		"--limit 0.5/s":           engine.TokenBucket(engine.PerSecond(0.5), 1),
		"--limit 2.5/s":           engine.TokenBucket(engine.PerSecond(2.5), 3),
		"--limit 0.5/s --burst 3": engine.TokenBucket(engine.PerSecond(0.5), 3),
		"--algorithm token-bucket --limit 10/m --burst 10":     engine.TokenBucket(engine.Per(10, time.Minute), 10),
		"--algorithm batch-refill --limit 10/m":                engine.BatchRefill(10, time.Minute, 10),
		"--algorithm batch-refill --limit 10/1500ms --burst 7": engine.BatchRefill(10, 1500*time.Millisecond, 7),
		"--algorithm fixed-window":                             engine.FixedWindow(1, time.Second),
		"--algorithm fixed-window --limit 5000/h":              engine.FixedWindow(5000, time.Hour),
		"--algorithm fixed-window --limit 3/d --aligned":       engine.FixedWindow(3, 24*time.Hour).Aligned(),
		"--algorithm sliding-window --limit 100/7d":            engine.SlidingWindow(100, 7*24*time.Hour),
		"--algorithm sliding-log --limit 1e3/1h30m":            engine.SlidingLog(1000, 90*time.Minute),
	} {
		f, err := parse(t, args)
		require.NoError(t, err, args)
		got, err := f.Policy()
		require.NoError(t, err, args)
		assert.Equal(t, want, got, args)
		limiter, err := f.Limiter(got, 100)
		require.NoError(t, err, args)
		limiter.Close()
	}
}

func TestFlagsThatDoNotGoTogether(t *testing.T) {
	for args, want := range map[string]string{
		"--algorithm fixed-window --limit 10/m --burst 5": "--burst 5: a fixed-window has none, because all of " +
			"its limit, 10/m, may come at once: leave it out, or use the algorithm token-bucket",
		"--algorithm sliding-window --burst 5": "--burst 5: a sliding-window has none",
		"--algorithm sliding-log --burst 0":    "--burst 0: a sliding-log has none",
		"--aligned":                            "--aligned: a token-bucket has no windows of the clock: leave it out, or use the algorithm fixed-window",
		"--algorithm sliding-window --aligned": "--aligned: a sliding-window has no windows of the clock",
		"--algorithm fixed-window --limit 0.5/s": "--limit 0.5/s: a fixed-window wants a whole number of " +
			"requests: write one, in a longer period, such as 1/2s",
		"--algorithm sliding-log --limit 2.5/m":       "such as 5/2m0s",
		"--algorithm batch-refill --limit 0.7/1500ms": "such as 7/15s",
		"--algorithm batch-refill --limit 1.23e-8/s": "a batch-refill wants a whole number of requests: write " +
			"one, in a longer period",
	} {
		f, err := parse(t, args)
		require.NoError(t, err, args)
		_, err = f.Policy()
		require.ErrorContains(t, err, want, args)
		assertMisuse(t, err)
	}
}

func TestComparison(t *testing.T) {
	f, err := parse(t, "--limit 10/m --max-keys 7")
	require.NoError(t, err)
	c, err := f.Comparison()
	require.NoError(t, err)
	fixed := engine.FixedWindow(10, time.Minute)
	want := &Comparison{
		Policies: []engine.Policy{
			engine.TokenBucket(engine.Per(10, time.Minute), 10), fixed,
			engine.SlidingWindow(10, time.Minute), engine.SlidingLog(10, time.Minute),
		},
		Limit: 10, Window: time.Minute, MaxKeys: 7,
	}
	assert.Equal(t, want, c)

	f.Aligned = true
	c, err = f.Comparison()
	require.NoError(t, err)
	want.Policies[1] = fixed.Aligned()
	assert.Equal(t, want, c)
	assert.Equal(t, "token-bucket, fixed-window, sliding-window and sliding-log", Compared())
}

func TestComparisonRefusesWhatItWouldNotHeed(t *testing.T) {
	for args, want := range map[string]string{
		"--burst 5":                "--burst 5: --compare gives every algorithm the same limit",
		"--algorithm token-bucket": "--algorithm token-bucket: --compare runs token-bucket, fixed-window,",
		"--limit 0.5/s": "--limit 0.5/s: a fixed-window wants a whole number of requests: write one, in a " +
			"longer period, such as 1/2s",
	} {
		f, err := parse(t, args)
		require.NoError(t, err, args)
		_, err = f.Comparison()
		require.ErrorContains(t, err, want, args)
		assertMisuse(t, err)
	}
}

func TestBadFlagsAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"--algorithm leaky": `algorithm "leaky": want token-bucket, batch-refill, fixed-window, sliding-window or sliding-log`,
		"--algorithm Fixed": `algorithm "Fixed"`,
		"--limit 5":         `"5"`,
		"--burst=-1":        `--burst: expected a valid 64 bit uint but got "-1"`,
	} {
		_, err := parse(t, args)
		assert.ErrorContains(t, err, want, args)
	}
	f, err := parse(t, "--max-keys 0")
	require.NoError(t, err)
	_, err = f.Limiter(engine.FixedWindow(1, time.Second), 1)
	require.ErrorContains(t, err, "MaxKeys(0)")
	assertMisuse(t, err)
}

func assertMisuse(t *testing.T, err error) {
	t.Helper()
	var coder kong.ExitCoder
	require.True(t, errors.As(err, &coder), "%v has no exit status", err)
	assert.Equal(t, 80, coder.ExitCode())
}
