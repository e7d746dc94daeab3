package league

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/stretchr/testify/assert"
	"golang.org/x/time/rate"
	"tailscale.com/util/limiter"

	"github.com/didip/tollbooth/v7"
	limits "github.com/didip/tollbooth/v7/limiter"

	"github.com/weir-go/weir/limitertest"
)

// The tests in this file are the programs of docs/audit.md. If a test no longer shows its finding, a table in
// docs/audit.md must change.

// TestALateCallerRefills: x/time/rate sets its clock back to an earlier time of a caller. The time since the earlier
// time then counts twice.
func TestALateCallerRefills(t *testing.T) {
	lim, t0 := rate.NewLimiter(1, 5), time.Now()
	admitted := 0
	ask := func(at time.Time, times int) {
		for range times {
			if lim.AllowN(at, 1) {
				admitted++
			}
		}
	}
	ask(t0.Add(10*time.Second), 4)
	ask(t0, 1) // this caller read the clock earlier and got the lock later
	ask(t0.Add(10*time.Second), 5)
	assert.Equal(t, 10, admitted, "of a burst of 5")
}

// TestAnIdleKeyHasTwoBursts: tailscale's limiter refills only when no tokens are left, and counts the time in which the
// bucket was full. So an idle key gets a second burst at once.
func TestAnIdleKeyHasTwoBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := &limiter.Limiter[string]{Size: 10, Max: 5, RefillInterval: time.Second}
		lim.Allow("k")
		time.Sleep(time.Minute)
		admitted := 0
		for range 20 {
			if lim.Allow("k") {
				admitted++
			}
		}
		assert.Equal(t, 9, admitted, "of a Max of 5")
	})
}

// TestAKeyExpiresInUse: a key of tollbooth expires a fixed time after its first request, however often it is used.
func TestAKeyExpiresInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := tollbooth.NewLimiter(1./3600, &limits.ExpirableOptions{DefaultExpirationTTL: time.Hour}).SetBurst(5)
		drain := func() (admitted int) {
			for range 10 {
				if !lim.LimitReached("k") {
					admitted++
				}
			}
			return admitted
		}
		assert.Equal(t, 5, drain())
		time.Sleep(59 * time.Minute)
		assert.Zero(t, drain())
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 5, drain(), "one has come back")
	})
}

// TestACancelThatIsRepeated: a second cancel of a reservation of x/time/rate gives back tokens again.
func TestACancelThatIsRepeated(t *testing.T) {
	for times, want := range map[int]bool{1: false, 2: true} {
		lim, t0 := rate.NewLimiter(1, 1), time.Now()
		assert.True(t, lim.AllowN(t0, 1))
		r := lim.ReserveN(t0, 1)
		for range times {
			r.CancelAt(t0)
		}
		assert.Equal(t, want, lim.AllowN(t0, 1), "the second of a burst of 1, canceled %d times", times)
	}
}

// TestCostsThatOverflow: these libraries multiply or add the cost of a request without a check for overflow. So a
// request whose cost is above the limit passes.
func TestCostsThatOverflow(t *testing.T) {
	daily := limitertest.Limit{Tokens: 1, Per: 24 * time.Hour, Burst: 1}
	for name, c := range map[string]struct {
		of   made
		cost int64
	}{"throttled": {gcra, 1 << 32}, "juju/ratelimit": {buckets, 1 << 32}, "httprate": {increments, math.MaxInt64}} {
		synctest.Test(t, func(t *testing.T) {
			limiter := c.of(t, daily)
			assert.False(t, limiter.Take("a", 2).Allowed, name)
			if name == "httprate" {
				assert.True(t, limiter.Take("b", 1).Allowed, name)
			}
			assert.True(t, limiter.Take("b", c.cost).Allowed, name)
		})
	}
}

// TestARefusedCostIsCharged: in failsafe-go, the waiting time for a huge cost overflows. The refused request is still
// charged.
func TestARefusedCostIsCharged(t *testing.T) {
	lim := ratelimiter.NewBursty[any](1, 24*time.Hour)
	assert.False(t, lim.TryAcquirePermits(1<<32))
	assert.False(t, lim.TryAcquirePermit(), "the one that nobody was given")
	least := ratelimiter.NewBursty[any](1, 24*time.Hour)
	assert.False(t, least.TryAcquirePermits(2))
	assert.True(t, least.TryAcquirePermit(), "a small one that is refused is not charged")
}
