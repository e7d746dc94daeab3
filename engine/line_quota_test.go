package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quotaLine runs a test in a synctest bubble, with a key under a quota of two tokens. The key has taken both, and one
// token comes back every three seconds.
func quotaLine(t *testing.T, test func(t *testing.T, l *Limiter, k Key, queue func(n uint64) *Turn)) {
	for _, token := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			l, err := New(TokenBucket(Per(1, token), 10), MaxKeys(10), MaxQuota(2), ClockFunc(time.Now))
			require.NoError(t, err)
			defer l.Close()
			k := l.KeyUint64(1).With(quotaOf(t, l, TokenBucket(Per(1, 3*time.Second), 2)))
			require.True(t, l.TakeKey(k, 2).Allowed)
			test(t, l, k, func(n uint64) *Turn {
				turn, _, err := l.Queue(k, n, time.Minute)
				require.NoError(t, err)
				return turn
			})
			assert.Empty(t, l.lines.byKey)
		})
	}
}

func waits(t *testing.T, seconds map[*Turn]int) {
	t.Helper()
	for turn, want := range seconds {
		assert.Equal(t, time.Duration(want)*time.Second, turn.Until(nil))
	}
}

// TestALineUnderAQuotaMovesUpByItsTokens: turns under a quota move up at the rate of the quota, not of the limiter.
func TestALineUnderAQuotaMovesUpByItsTokens(t *testing.T) {
	for _, stranger := range []bool{false, true} {
		quotaLine(t, func(t *testing.T, l *Limiter, k Key, queue func(n uint64) *Turn) {
			first, second := queue(1), queue(2)
			if stranger {
				_, _, err := l.Reserve(k, 1, time.Minute)
				require.NoError(t, err)
			}
			third := queue(1)
			if stranger {
				waits(t, map[*Turn]int{first: 3, second: 9, third: 15})
			} else {
				waits(t, map[*Turn]int{first: 3, second: 9, third: 12})
			}
			first.Leave()
			if stranger {
				waits(t, map[*Turn]int{second: 6, third: 15})
			} else {
				waits(t, map[*Turn]int{second: 6, third: 9})
			}
			second.Leave()
			third.Leave()
		})
	}
}

// TestATurnUnderAQuotaComesFirst: a turn whose caller comes early gets the first tokens of the line.
func TestATurnUnderAQuotaComesFirst(t *testing.T) {
	for _, stranger := range []bool{false, true} {
		quotaLine(t, func(t *testing.T, l *Limiter, k Key, queue func(n uint64) *Turn) {
			first := queue(1)
			if stranger {
				_, _, err := l.Reserve(k, 1, time.Minute)
				require.NoError(t, err)
			}
			second, third := queue(2), queue(1)
			if stranger {
				waits(t, map[*Turn]int{first: 3, second: 12, third: 15})
			} else {
				waits(t, map[*Turn]int{first: 3, second: 9, third: 12})
			}
			third.Come()
			if stranger {
				waits(t, map[*Turn]int{first: 3, second: 15})
			} else {
				waits(t, map[*Turn]int{first: 6, second: 12})
			}
			first.Leave()
			second.Leave()
		})
	}
}
