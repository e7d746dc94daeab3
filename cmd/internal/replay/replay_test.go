package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
)

func replay(t *testing.T, log io.Reader, rate engine.Rate, burst uint64, options ...engine.Option) (*Report, error) {
	t.Helper()
	return Run(engine.TokenBucket(rate, burst), func(p engine.Policy, room int, more ...engine.Option) (*engine.Limiter, error) {
		return engine.New(p, slices.Concat(more, []engine.Option{engine.MaxKeys(min(room, engine.DefaultMaxKeys))}, options)...)
	}, accesslog.NewLog(log))
}

func line(host string, second int) string {
	at := time.Date(2015, time.May, 17, 10, 0, second, 0, time.UTC)
	return fmt.Sprintf("%s - - [%s] \"GET / HTTP/1.1\" 200 1\n", host, at.Format("02/Jan/2006:15:04:05 -0700"))
}

// TestReplayOfARealLogIsExact compares every figure of every key with exact arithmetic, and the totals with numbers
// known beforehand. The log is an excerpt. WEIR_ACCESS_LOG may name the complete log, which is then tested, too.
func TestReplayOfARealLogIsExact(t *testing.T) {
	type totals struct{ requests, keys, allowed, refused uint64 }
	type golden struct {
		path                     string
		onePerSecond, tenAMinute totals
	}
	logs := []golden{{"testdata/apache_access_excerpt.log", totals{500, 109, 500, 0}, totals{500, 109, 446, 54}}}
	if whole := os.Getenv("WEIR_ACCESS_LOG"); whole != "" {
		logs = append(logs, golden{whole, totals{10000, 1753, 9909, 91}, totals{10000, 1753, 8987, 1013}})
	}
	for _, log := range logs {
		for _, limit := range []struct {
			tokens float64
			period time.Duration
			burst  uint64
			want   totals
		}{
			{1, time.Second, 5, log.onePerSecond},
			{10, time.Minute, 10, log.tenAMinute},
		} {
			rate := engine.Per(limit.tokens, limit.period)
			t.Run(fmt.Sprintf("%s at %s burst %d", log.path, rate, limit.burst), func(t *testing.T) {
				file, err := os.Open(log.path)
				require.NoError(t, err)
				defer file.Close()
				got, err := replay(t, file, rate, limit.burst)
				require.NoError(t, err)

				exact := exactReport(t, readLog(t, log.path), limit.tokens, limit.period, limit.burst)
				assert.ElementsMatch(t, exact.RefusedKeys, got.RefusedKeys)
				assert.Equal(t, totals{exact.Requests, exact.Keys, exact.Allowed, exact.Refused},
					totals{got.Requests, got.Keys, got.Allowed, got.Refused}, "against exact arithmetic")
				assert.Equal(t, limit.want, totals{got.Requests, got.Keys, got.Allowed, got.Refused},
					"against known numbers")
				assert.Zero(t, got.Skipped)
				assert.Empty(t, got.EvictionNote())
			})
		}
	}
}

func TestReplayTimeNeverRunsBackwards(t *testing.T) {
	// The third line has the same time as the first. Sorting moves it to the place after the first.
	log := line("a", 0) + line("a", 10) + line("a", 0) + line("a", 10)
	report, err := replay(t, strings.NewReader(log), engine.Per(1, 10*time.Second), 1)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), report.Allowed)
	assert.Equal(t, uint64(2), report.Refused)
	assert.Equal(t, uint64(1), report.Late)
	assert.Equal(t, 10*time.Second, report.MostLate)
	assert.Equal(t, 10*time.Second, report.Last.Sub(report.First))

	// The line after the many lines comes too late to be sorted in memory. So the log is sorted on disk.
	log = line("a", 0) + strings.Repeat(line("a", 10), 1<<14) + line("a", 0) + line("a", 10)
	report, err = replay(t, strings.NewReader(log), engine.Per(1, 10*time.Second), 1)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), report.Allowed)
	assert.Equal(t, uint64(1), report.Late)
}

// TestWhatSortingChanges: every kind of replay reports what sorting changes. It does not matter how many lines late a
// line is.
func TestWhatSortingChanges(t *testing.T) {
	for _, behind := range []int{2, 2000, 20_000} {
		var log, late strings.Builder
		for i := range 3 * 20_000 {
			if i%3 == 0 {
				late.WriteString(line("b", i))
			} else {
				log.WriteString(line("b", i))
			}
			if i%(3*behind) == 3*behind-1 {
				log.WriteString(late.String())
				late.Reset()
			}
		}
		path := filepath.Join(t.TempDir(), "access.log")
		require.NoError(t, os.WriteFile(path, []byte(log.String()+late.String()), 0o600))
		// By time, every request is admitted. In the order of the log, late requests are refused, because they count at
		// the time of the request before them.
		open := func() *accesslog.Log {
			l, err := accesslog.Open([]string{path}, "")
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, l.Close()) })
			return l
		}
		policy := engine.TokenBucket(engine.PerSecond(1), 1)
		r, err := Run(policy, newLimiter, open())
		require.NoError(t, err)
		assert.Zero(t, r.Refused, "%d lines behind", behind)
		assert.Equal(t, uint64(20_000), r.AsLogged, "%d lines behind", behind)

		c, err := Compare(&limit.Comparison{Policies: []engine.Policy{policy}, Limit: 1, Window: time.Second, MaxKeys: 9},
			newLimiter, open())
		require.NoError(t, err)
		assert.Equal(t, r.Outcome.AsLogged, c.Outcomes[0].AsLogged)

		file, err := rulefile.Parse("weir.yaml", []byte("rules: [{name: a, rate: 1/s, burst: 1}]"))
		require.NoError(t, err)
		of, err := RunRules(file, RulesOptions{}, open())
		require.NoError(t, err)
		assert.Zero(t, of.Refused)
		assert.Equal(t, []uint64{r.AsLogged, r.AsLogged}, []uint64{of.AsLogged, of.Rules[0].AsLogged})
	}
}

func TestReplayForgetsNothingThatMattersOverYears(t *testing.T) {
	const year = 365 * 24 * 3600
	log := line("a", 0) + line("a", 0) + line("a", 10*year) + line("a", 10*year) + line("a", 29*year)
	report, err := replay(t, strings.NewReader(log), engine.PerSecond(1), 1)
	require.NoError(t, err)
	assert.Equal(t, []Key{{"a", 5, 2}}, report.RefusedKeys)
}

func TestReplayTakesAnAddressForOneClientHoweverItIsWritten(t *testing.T) {
	log := line("192.0.2.1", 0) + line("::ffff:192.0.2.1", 0) +
		line("2001:db8::1", 0) + line("2001:DB8:0:0::1", 0) + line("2001:db8::ffff:0:0:2", 0) + // one network
		line("crawler.example", 0) + line("fe80::1%eth0", 0) + line("fe80::1", 0)
	report, err := replay(t, strings.NewReader(log), engine.PerSecond(1), 1)
	require.NoError(t, err)
	assert.Equal(t, uint64(4), report.Keys)
	assert.Equal(t, []Key{{"2001:db8::/64", 3, 2}, {"192.0.2.1", 2, 1}, {"fe80::/64", 2, 1}}, report.RefusedKeys)
}

func TestReplayKeepsTextAndAddressApart(t *testing.T) {
	// The bytes of the address are the characters of the text.
	text := "abcdefghijklmnop"
	addr := "6162:6364:6566:6768:696a:6b6c:6d6e:6f70"
	report, err := replay(t, strings.NewReader(line(text, 0)+line(addr, 0)), engine.PerSecond(1), 1)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), report.Keys)
	assert.Zero(t, report.Refused)
}

func TestReplayOrdersKeysByRefusalsThenName(t *testing.T) {
	log := strings.Repeat(line("c", 0), 2) + strings.Repeat(line("b", 0), 4) + strings.Repeat(line("a", 0),
		2) + line("d", 0)
	report, err := replay(t, strings.NewReader(log), engine.PerSecond(1), 1)
	require.NoError(t, err)
	assert.Equal(t, []Key{{"b", 4, 3}, {"a", 2, 1}, {"c", 2, 1}}, report.RefusedKeys)
}

func TestReplaySkipsBadLinesWithTheirReasons(t *testing.T) {
	log := line("a", 0) + "nonsense\n" + "\n" + strings.Repeat("x", accesslog.MaxLine+1) + "\n" + line("a", 1)
	report, err := replay(t, strings.NewReader(log), engine.PerSecond(1), 1)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), report.Requests)
	assert.Equal(t, uint64(3), report.Skipped)
	var reasons []string
	for _, r := range report.Reasons {
		reasons = append(reasons, r.Error())
	}
	assert.Equal(t, []string{
		`line 2: no date in brackets followed by a request in quotes`,
		"line 3: the line is empty",
		"line 4: the line is longer than 1048576 bytes",
	}, reasons)
}

func TestReplayRemembersOnlyTheFirstReasons(t *testing.T) {
	report, err := replay(t, strings.NewReader(line("a", 0)+strings.Repeat("x\n", 1000)), engine.PerSecond(1), 1)
	require.NoError(t, err)
	assert.Equal(t, uint64(1000), report.Skipped)
	assert.Len(t, report.Reasons, maxReasons)
}

func TestReplayPassesOnWhyThereIsNoLimiter(t *testing.T) {
	_, err := replay(t, strings.NewReader(line("a", 0)), engine.PerSecond(1), 0)
	assert.ErrorContains(t, err, "burst of 0 tokens")
}

func TestReplayRefusesAnInputWithoutRequests(t *testing.T) {
	broken := errors.New("device on fire")
	cases := map[string]struct {
		log  io.Reader
		want string
	}{
		"empty": {strings.NewReader(""), "the log is empty: there is nothing to replay"},
		"another file": {strings.NewReader("hello\nworld\n"),
			"line 1 is in no known format (nor is any after it); is it an access log?"},
		"breaking off": {io.MultiReader(strings.NewReader(line("a", 0)), iotest.ErrReader(broken)),
			"reading stopped after line 1: device on fire"},
		"truncated .gz": {strings.NewReader("\x1f\x8b\x08\x00"),
			"the gzip data breaks off after line 0: the file is truncated"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			report, err := replay(t, c.log, engine.PerSecond(1), 1)
			assert.ErrorContains(t, err, c.want)
			assert.Nil(t, report)
		})
	}
}

func TestReplaySaysWhenItForgot(t *testing.T) {
	var log strings.Builder
	for i := range 1000 {
		log.WriteString(line(fmt.Sprintf("host%d", i), 0))
	}
	report, err := replay(t, strings.NewReader(log.String()), engine.PerSecond(1), 1, engine.MaxKeys(1))
	require.NoError(t, err)
	assert.Equal(t, uint64(1000), report.Keys)
	assert.NotZero(t, report.Evictions)
	assert.Equal(t, report.Evictions, report.ForgivenTokens, "each owed one token")
	assert.Contains(t, report.EvictionNote(), "with a larger --max-keys")
}
