package engine

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAllowReadsEveryClock: with every clock and hash, Allow admits a request when its token is back.
func TestAllowReadsEveryClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	for clock, option := range map[string]Option{"counter": ClockTSC(), "precise": ClockPrecise(), "coarse": ClockCoarse()} {
		for hash, options := range map[string][]Option{
			"seeded": nil, "stable": {HashStable()}, "shared": {Shared(path + clock)},
		} {
			t.Run(clock+", "+hash, func(t *testing.T) {
				l, err := New(TokenBucket(Per(1, 2*time.Millisecond), 1), append(options, option, MaxKeys(100), SweepInterval(time.Hour))...)
				require.NoError(t, err)
				defer l.Close()
				quota, err := l.Quota(TokenBucket(Per(1, 2*time.Millisecond), 1))
				require.NoError(t, err)
				for _, allow := range []func() bool{
					func() bool { return l.Allow("text") }, func() bool { return l.AllowKey(l.KeyUint64(1)) },
					func() bool { return l.AllowKey(l.KeyUint64(2).With(quota)) },
				} {
					for range 5 {
						require.True(t, allow())
						for taken := l.clock.exactNanos(); l.clock.exactNanos()-taken < int64(2*time.Millisecond); {
							runtime.Gosched()
						}
					}
				}
			})
		}
	}
}
