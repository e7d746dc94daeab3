package engine

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"100/s":      PerSecond(100),
		"0.5/s":      PerSecond(0.5),
		"10/m":       Per(10, time.Minute),
		"5000/h":     Per(5000, time.Hour),
		"3/d":        Per(3, 24*time.Hour),
		"2/ms":       Per(2, time.Millisecond),
		"10/1500ms":  Per(10, 1500*time.Millisecond),
		"1/1h30m":    Per(1, 90*time.Minute),
		"1/7d":       Per(1, 7*24*time.Hour),
		"1e9/s":      PerSecond(1e9),
		"1/100000d":  Per(1, 100000*24*time.Hour),
		"+1/s":       PerSecond(1),
		"1000000/ms": Per(1e6, time.Millisecond),
	} {
		got, err := ParseRate(text)
		if text == "1/100000d" {
			require.ErrorContains(t, err, `"100000d" is not a period`)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want, got, text)
		again, err := ParseRate(got.String())
		require.NoError(t, err, "what String writes, ParseRate reads")
		assert.Equal(t, got, again)
	}
}

func TestParseRateRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                  `engine: rate "": want tokens/period, such as 100/s or 10/1500ms`,
		"100":               "want tokens/period",
		"/s":                `"" is not a number of tokens`,
		"ten/s":             `"ten" is not a number of tokens`,
		"0x10/s":            `"0x10" is not a number`,
		"1_000/s":           `"1_000" is not a number`,
		"inf/s":             `"inf" is not a number`,
		"NaN/s":             `"NaN" is not a number`,
		"1e999/s":           `"1e999" is not a number`,
		"0/s":               "must be above 0 and finite",
		"-1/s":              "must be above 0 and finite",
		"1/":                `"" is not a period: want ms, s, m, h, d or a duration`,
		"1/week":            `"week" is not a period`,
		"1/s/s":             `"s/s" is not a period`,
		"1/0s":              "the period must be at least 1ns",
		"1/-1s":             "the period must be at least 1ns",
		"1/0d":              "the period must be at least 1ns",
		"1000000001/s":      "want at most 1000000000 tokens a second",
		"2/ns":              `"ns" is not a period`,
		"2/1ns":             "want at most 1000000000 tokens a second",
		"0.000001/1000000h": "want at least one token in",
		"1/99999999999h":    "is not a period",
	} {
		_, err := ParseRate(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestRateString(t *testing.T) {
	assert.Equal(t, "0.1/s", PerSecond(0.1).String())
	assert.Equal(t, "10/1.5s", Per(10, 1500*time.Millisecond).String())
	assert.Equal(t, "token bucket 100/s burst 200", TokenBucket(PerSecond(100), 200).String())
	assert.Equal(t, "no policy", Policy{}.String())
}

// FuzzParseRate: New accepts every rate that ParseRate accepts, and ParseRate reads the text of String as the same
// rate.
func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"100/s", "10/1500ms", "1/1h30m", "0.5/d", "1e9/s", "x", "1/", "-1/s", "1e-300/ms",
		"9/65535d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRate(s)
		if err != nil {
			return
		}
		require.True(t, r.Tokens > 0 && !math.IsInf(r.Tokens, 0) && r.Period > 0)
		again, err := ParseRate(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)
		_, err = TokenBucket(r, 1).build(1)
		require.NoError(t, err)
	})
}

func TestRateAsText(t *testing.T) {
	for text, want := range map[string]Rate{"100/s": PerSecond(100), "10/1500ms": Per(10, 1500*time.Millisecond),
		"1/7d": Per(1, 7*24*time.Hour)} {
		var got Rate
		require.NoError(t, got.UnmarshalText([]byte(text)))
		assert.Equal(t, want, got)
		written, err := got.MarshalText()
		require.NoError(t, err)
		var again Rate
		require.NoError(t, again.UnmarshalText(written))
		assert.Equal(t, want, again)
	}
	kept := PerSecond(3)
	require.ErrorContains(t, kept.UnmarshalText([]byte("5")), `rate "5": want tokens/period`)
	assert.Equal(t, PerSecond(3), kept, "an error changes nothing")
	for _, bad := range []Rate{{}, PerSecond(-1), PerSecond(2e9), PerSecond(math.NaN())} {
		_, err := bad.MarshalText()
		require.ErrorContains(t, err, "engine: rate "+bad.String())
	}
}

func TestRatePerSecond(t *testing.T) {
	for rate, want := range map[Rate]float64{PerSecond(97): 97, Per(30, time.Minute): 0.5, Per(1, time.Millisecond): 1000} {
		assert.Equal(t, want, rate.PerSecond())
	}
}
