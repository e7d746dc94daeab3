package atomicbucket_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/reference"
)

// TestConcurrencyAgainstTheModel (I1, I2, I8): at every nanosecond, as many tokens are in flight as in the model, for
// any limit and any time after which requests are forgotten.
func TestConcurrencyAgainstTheModel(t *testing.T) {
	tried := 0
	for _, w := range windows {
		algorithm, err := atomicbucket.NewConcurrency(w.limit, w.limit, w.window)
		if err != nil {
			continue
		}
		tried++
		t.Run(fmt.Sprintf("%d for %v", w.limit, w.window), func(t *testing.T) {
			for seed := range trials(15) {
				model := reference.NewConcurrency(w.limit, w.window)
				r := &trial{
					cell: &cell{algorithm: &algorithm}, model: model, limit: w.limit, length: int64(w.window),
					random: rand.New(rand.NewPCG(seed, w.limit)), idleAfter: model.ResetAfter, lateWaits: always,
				}
				r.run(t, r.random.Int64N(1<<62)>>r.random.IntN(40), 60)
			}
		})
	}
	assert.Greater(t, tried, 8)
}

// TestConcurrencyOnTheCircle: a record is read correctly for as long as a table may leave it unchanged.
func TestConcurrencyOnTheCircle(t *testing.T) {
	for _, w := range windows {
		if algorithm, err := atomicbucket.NewConcurrency(w.limit, w.limit, w.window); err == nil {
			requireCircle(t, &algorithm, w.limit, 2*int64(w.window))
		}
	}
}

// TestConcurrencyByHeart compares a limit in flight with hand-computed numbers. Tokens that are taken are forgotten
// when the next period ends. Tokens that are given back make room at once.
func TestConcurrencyByHeart(t *testing.T) {
	algorithm, err := atomicbucket.NewConcurrency(5, 5, time.Hour)
	require.NoError(t, err)
	const hour = int64(time.Hour)
	at := 1000*hour + hour/4
	c := newCell(&algorithm, at)
	require.True(t, c.take(at, 2))
	require.True(t, c.take(at+hour, 2))
	require.False(t, c.take(at+hour, 2))
	status := func(at int64, n uint64) atomicbucket.Status {
		return algorithm.Status(c.state.Record(), at, algorithm.Quota().Demand(n))
	}
	assert.Equal(t, atomicbucket.Status{Remaining: 1, ResetAfter: 105 * time.Minute}, status(at+hour, 1))
	lower := algorithm.Status(c.state.Record(), at+hour, atomicbucket.Demand{Cost: 1, Limit: 3, Token: 1})
	assert.Equal(t, atomicbucket.Status{RetryAfter: 45 * time.Minute, ResetAfter: 105 * time.Minute}, lower, "a limit below what is in flight")
	assert.Equal(t, atomicbucket.Status{Remaining: 1, RetryAfter: 45 * time.Minute, ResetAfter: 105 * time.Minute}, status(at+hour, 3))
	assert.Equal(t, atomicbucket.Status{Remaining: 1, RetryAfter: 105 * time.Minute, ResetAfter: 105 * time.Minute}, status(at+hour, 4))
	for later, want := range map[int64]uint64{0: 0, hour/4*3 - 1: 0, hour / 4 * 3: 2, hour/4*7 - 1: 2, hour / 4 * 7: 4, 9 * hour: 4} {
		assert.Equal(t, want, algorithm.Forgotten(c.state, algorithm.Ticks(at+hour+later)), later)
	}
	assert.EqualValues(t, 0, algorithm.Forgotten(c.state, algorithm.Ticks(at-hour)), "of a late call nothing")
}

// TestConcurrencyNumbers: numbers out of range return an error with the range.
func TestConcurrencyNumbers(t *testing.T) {
	for _, c := range []struct {
		limit, most uint64
		longest     time.Duration
		err         string
	}{
		{1, 1, time.Microsecond, ""},
		{15, 15, time.Microsecond, ""},
		{16, 16, time.Microsecond, "limit of 16 tokens in flight, forgotten after 1µs: want 1 to 15 tokens"},
		{1, 16, time.Microsecond, "limit of 1 tokens in flight, forgotten after 1µs: want 1 to 15 tokens"},
		{atomicbucket.MaxInFlight, atomicbucket.MaxInFlight, 7500 * time.Millisecond, ""},
		{atomicbucket.MaxInFlight, atomicbucket.MaxInFlight, 7500*time.Millisecond - 1, "want 1 to 32767 tokens"},
		{atomicbucket.MaxInFlight, atomicbucket.MaxInFlight, atomicbucket.MaxWindow, ""},
		{atomicbucket.MaxInFlight + 1, atomicbucket.MaxInFlight + 1, time.Hour, "want 1 to 65535 tokens"},
		{0, 1, time.Hour, "limit of 0 tokens in flight, forgotten after 1h0m0s: want 1 to 1 tokens"},
		{3, 2, time.Hour, "want 1 to 2 tokens"},
		{0, 0, time.Hour, "want 1 to 65535 tokens"},
		{1, 1, time.Microsecond - 1, "limit of 1 tokens in flight, forgotten after 999ns: want 1µs to 8760h0m0s"},
		{1, 1, atomicbucket.MaxWindow + 1, "want 1µs to 8760h0m0s"},
	} {
		algorithm, err := atomicbucket.NewConcurrency(c.limit, c.most, c.longest)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		assert.GreaterOrEqual(t, algorithm.MaxSkew(), 30*time.Second)
		assert.GreaterOrEqual(t, atomicbucket.Most(&algorithm), c.most)
	}
}

// TestConcurrencyFollowsItsOwnKind: a limit takes over the tokens in flight of another limit, unchanged. If the two
// limits forget tokens after different times, the result is an error.
func TestConcurrencyFollowsItsOwnKind(t *testing.T) {
	of := func(limit uint64, longest time.Duration) *atomicbucket.Concurrency {
		algorithm, err := atomicbucket.NewConcurrency(limit, limit, longest)
		require.NoError(t, err)
		return &algorithm
	}
	before := of(5, time.Hour)
	after, err := of(1000, time.Hour).Following(before)
	require.NoError(t, err)
	assert.EqualValues(t, 1000, after.Quota().Tokens)
	assert.True(t, atomicbucket.SameUnits(before, after))
	c := newCell(before, int64(time.Hour))
	require.True(t, c.take(int64(time.Hour), 5))
	assert.Equal(t, c.state.Payload(), after.Convert(before, c.state, int64(time.Hour), atomicbucket.Change{}))
	_, err = of(5, time.Minute).Following(before)
	require.EqualError(t, err, "what is in flight is forgotten after 1m0s: want 1h0m0s, as at New")
	assert.False(t, atomicbucket.SameUnits(of(5, time.Minute), before))
	window, err := atomicbucket.NewFixedWindow(5, 5, time.Hour, false)
	require.NoError(t, err)
	_, err = before.Following(&window)
	require.Error(t, err)
	assert.False(t, atomicbucket.SameUnits(&window, before))
}
