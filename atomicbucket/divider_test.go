package atomicbucket

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireDivides checks the quotient at one instant and, near it, the first instant of a count and the wait until then.
func requireDivides(t *testing.T, d uint64, nanos int64) {
	t.Helper()
	divider := newDivider(d)
	want := uint64(nanos) / d
	require.Equal(t, want, divider.quo(nanos), "%d / %d", nanos, d)
	if hi, first := mul64(want, d); hi == 0 && first <= math.MaxInt64 {
		require.Equal(t, first, divider.first(want), "the first instant of %d periods of %d ns", want, d)
	}
	if next := new(big.Int).Mul(new(big.Int).SetUint64(want+1), new(big.Int).SetUint64(d)); next.IsInt64() {
		require.EqualValues(t, next.Int64()-nanos, divider.wait(nanos, 1), "%d ns, until the next period of %d", nanos, d)
	} else {
		require.EqualValues(t, int64(math.MaxInt64), divider.wait(nanos, 1), "the next period of %d ns after %d is beyond the end", d, nanos)
	}
}

func mul64(a, b uint64) (hi, lo uint64) {
	product := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
	return new(big.Int).Rsh(product, 64).Uint64(), product.And(product, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
}

// TestDividerIsExact: the quotient is exact for every instant and every period. The test tries both ends of the range,
// instants next to multiples of the period, and random instants.
func TestDividerIsExact(t *testing.T) {
	periods := []uint64{1, 2, 3, 5, 7, 10, 641, 1000, 999_983, 1e9, 60e9, 3600e9, 86400e9, uint64(MaxWindow), math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64/2 + 1, math.MaxInt64 / 3}
	for bit := 1; bit < 63; bit++ {
		periods = append(periods, 1<<bit-1, 1<<bit, 1<<bit+1)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		periods = append(periods, 1+random.Uint64N(math.MaxInt64)>>random.IntN(62))
	}
	for _, d := range periods {
		for _, nanos := range []int64{0, 1, 1 << 61, 1<<62 - 1, 1 << 62, 1<<62 + 1, math.MaxInt64 - 1, math.MaxInt64} {
			requireDivides(t, d, nanos)
		}
		for range 60 {
			nanos := random.Int64N(math.MaxInt64) >> random.IntN(62)
			requireDivides(t, d, nanos)
			multiple := nanos - int64(uint64(nanos)%d)
			for _, off := range []int64{-1, 0, 1} {
				if at := multiple + off; at >= 0 {
					requireDivides(t, d, at)
				}
			}
		}
		last := math.MaxInt64 - int64(uint64(math.MaxInt64)%d) // the last multiple
		requireDivides(t, d, last)
		requireDivides(t, d, last-1)
	}
}

// TestDividerWaitIsNeverTooLong: a wait that would end after the last instant is the longest Duration.
func TestDividerWaitIsNeverTooLong(t *testing.T) {
	for _, d := range []uint64{1, 2, 3, 1e9, 1 << 62, math.MaxInt64} {
		for _, counts := range []uint64{math.MaxUint64, math.MaxUint64 - 1, 1 << 63, uint64(math.MaxInt64)/d + 1} {
			for _, nanos := range []int64{0, 1, 1 << 60, math.MaxInt64} {
				require.EqualValues(t, int64(math.MaxInt64), newDivider(d).wait(nanos, counts), "%d periods of %d ns", counts, d)
			}
		}
		require.Zero(t, newDivider(d).wait(12345, 0))
	}
}
