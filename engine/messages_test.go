package engine

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestErrorsNameTheValueAndTheRange: functions that check numbers without a limiter name the value and the range.
func TestErrorsNameTheValueAndTheRange(t *testing.T) {
	bucket := TokenBucket(PerSecond(1), 5)
	tiers := func(n int) (all []Policy) {
		for range n {
			all = append(all, bucket)
		}
		return all
	}
	bytes := func(maxKeys int, tiers ...Policy) error {
		_, err := Bytes(bucket, MaxKeys(maxKeys), Tiers(tiers...))
		return err
	}
	precision := func(p Policy, tiers ...Policy) error { _, err := p.Precision(tiers...); return err }
	rate := func(s string) error { _, err := ParseRate(s); return err }
	for want, err := range map[string]error{
		"engine: CheckChange of 0 policies to 2: want the limiter's own policy first":                             CheckChange(nil, tiers(2)),
		"engine: CheckChange of 1 policies to 0: want the limiter's own policy first":                             CheckChange(tiers(1), nil),
		"engine: Tiers: 19 tiers: want at most 14":                                                                CheckChange(tiers(20), tiers(20)),
		"engine: SetPolicy(token bucket 1/s burst 5) with 1 tiers: want 2, as many as before":                     CheckChange(tiers(3), tiers(2)),
		"engine: MaxKeys(0): want at least 1 and what memory can hold, at 27 bytes a key":                         bytes(0),
		"engine: Tiers: 20 tiers: want at most 14":                                                                bytes(9, tiers(20)...),
		"engine: fixed window 0/1ns: limit of 0 tokens every 1ns: want 1 to 4294967296 tokens":                    precision(FixedWindow(0, 1)),
		"engine: rate \"x/s\": \"x\" is not a number of tokens":                                                   rate("x/s"),
		"engine: rate \"5\": want tokens/period, such as 100/s or 10/1500ms":                                      rate("5"),
		"engine: rate \"5/x\": \"x\" is not a period: want ms, s, m, h, d or a duration such as 1500ms":           rate("5/x"),
		"engine: rate \"5/70000d\": \"70000d\" is not a period: want ms, s, m, h, d or a duration such as 1500ms": rate("5/70000d"),
	} {
		assert.EqualError(t, err, want)
	}
	assert.EqualError(t, precision(bucket, tiers(20)...), "engine: Tiers: 20 tiers: want at most 14")
	if strconv.IntSize == 64 {
		assert.ErrorContains(t, bytes(math.MaxInt), "engine: MaxKeys(9223372036854775807): want at least 1")
	}
	assert.NoError(t, CheckChange(tiers(14), tiers(14)))
	assert.NoError(t, bytes(9, tiers(14)...))
}
