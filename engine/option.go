package engine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

// An Option changes one setting of a limiter that [New] makes.
type Option func(*config) error

type config struct {
	maxKeys       int
	shards        int // 0 means that New chooses by size and GOMAXPROCS
	overflow      OverflowPolicy
	stableHash    bool
	prefault      bool
	interval      time.Duration
	file          *sharedfile.File // with Shared, the file, once it is attached
	clock         clockKind
	read          func() time.Time
	tiers         []Policy
	terms         terms
	observer      *observer
	sharedPath    string // path of the file; empty without Shared
	inFlight      bool   // the policy is Concurrency
	replacePolicy bool   // with ReplacePolicy, New replaces the policy of the file
}

const (
	// DefaultMaxKeys is the capacity without [MaxKeys].
	DefaultMaxKeys = 1_000_000
	// DefaultSweepInterval is the time between sweeps without [SweepInterval].
	DefaultSweepInterval = 10 * time.Second
)

// MaxKeys sets the number of keys for which the limiter has room. Idle keys, whose bucket is full, do not count. The
// number is at least 1; the default is 1,000,000. [New] allocates 26.9 bytes for each key: 1/0.6 slots of 16.1 bytes.
// Token buckets with [Tiers] or quotas take twice as much, and a [SlidingLog] takes more. New refuses a table that is
// larger than the machine's memory.
//
// A new key needs a free slot in its neighborhood of 32 slots. If all of them are in use, [Overflow] decides. If a
// table has MaxKeys keys, about one new key in 500 finds no room at first. After keys have come and gone, it is about
// one in 1,000.
func MaxKeys(n int) Option {
	return func(c *config) error {
		// The upper bound only ensures that the number of slots fits into its type. Memory runs out long before.
		if n < 1 || uint64(n) > 1<<56 {
			return fmt.Errorf("engine: MaxKeys(%d): want at least 1 and what memory can hold, at 27 bytes a key", n)
		}
		c.maxKeys = n
		return nil
	}
}

// Shards sets the number of shards, a power of two up to 4,096. By default, New chooses it by capacity and GOMAXPROCS.
// More shards mean less contention for counters of rare events. There are no locks in a table.
func Shards(n int) Option {
	return func(c *config) error {
		if n < 1 || n > shard.MaxShards || n&(n-1) != 0 {
			return fmt.Errorf("engine: Shards(%d): want a power of two from 1 to %d", n, shard.MaxShards)
		}
		c.shards = n
		return nil
	}
}

// HashStable makes keys with xxHash64 instead of a hash with a secret seed. A text then has the same Key in every
// process and on every machine. Use it only for keys from people you trust: collisions of xxHash64 are easy to find, so
// a client that can choose its key can drain another client's bucket.
func HashStable() Option {
	return func(c *config) error {
		c.stableHash = true
		return nil
	}
}

// Tiers adds up to 14 limits to the limiter's policy, such as one for paying users. [Key.Tier] returns a key under a
// tier. The limiter's own policy is tier 0, and tiers[0] is tier 1.
//
// All tiers share the algorithm and the record of each key, so a key that moves to another tier keeps the tokens that
// it has taken. Over any time t it gets at most B + R * t, where B is the highest burst and R the highest rate of the
// tiers and quotas of its requests.
//
// Tiers of a token bucket may differ in rate and burst. A rate that does not fit the limiter's own unit of time is
// rounded down, by less than a millionth. The records also store what a token cost, so a slot takes 32 bytes and a key
// 54 ([MaxKeys]). Tiers of other algorithms may differ only in the limit.
func Tiers(tiers ...Policy) Option {
	return func(c *config) error {
		if err := checkTiers(tiers); err != nil {
			return err
		}
		c.tiers = slices.Clone(tiers)
		return nil
	}
}

// checkTiers checks the number of tiers. The last number is reserved for tiers that the limiter does not have.
func checkTiers(tiers []Policy) error {
	if len(tiers) > shard.MaxTiers-2 {
		return fmt.Errorf("engine: Tiers: %d tiers: want at most %d", len(tiers), shard.MaxTiers-2)
	}
	return nil
}

// SweepInterval sets the time between two sweeps, 1ms to 24h; the default is 10s. A sweep counts the keys for [Stats].
// In a table that is more than half full, it also forgets keys whose bucket was already full at the previous sweep. No
// request waits for a sweep: requests reclaim slots themselves, and a sweep works in steps of some tens of microseconds
// with a rest of a millisecond in between.
func SweepInterval(d time.Duration) Option {
	return func(c *config) error {
		if d < time.Millisecond || d > 24*time.Hour {
			return fmt.Errorf("engine: SweepInterval(%v): want 1ms to 24h", d)
		}
		c.interval = d
		return nil
	}
}

// Prefault makes [New] touch the whole table, so that the first requests do not wait for the system's pages. The pages
// are huge if the system has huge pages. By default, a table takes memory when keys need it, and uses small pages until
// half of its pages are in use.
func Prefault() Option {
	return func(c *config) error {
		c.prefault = true
		return nil
	}
}

// ClockTSC reads the processor's time stamp counter. It is the fastest exact clock, and the default if Linux trusts the
// counter. Otherwise, and under testing/synctest, the limiter uses [ClockPrecise] instead. The counter is calibrated
// with the system's monotonic clock every ten seconds.
func ClockTSC() Option { return useClock(clockTSC, nil) }

// ClockPrecise reads Go's monotonic clock for every decision. Use it under testing/synctest.
func ClockPrecise() Option { return useClock(clockPrecise, nil) }

// ClockCoarse reads a word in memory that a goroutine renews every millisecond. It is the cheapest clock, but may be
// late: a millisecond or two on an idle machine, tens of milliseconds when every processor is busy. A refusal with a
// wait of at most 100ms is decided again with the exact clock. Within any real time t, a key gets at most burst + rate
// * (t + lateness), or what a window allows in t + lateness.
func ClockCoarse() Option { return useClock(clockCoarse, nil) }

// ClockFunc makes the limiter get its time from the function now, in tests or to replay requests of the past. The
// function must be safe for concurrent use, because every decision and the sweeper call it. Its first time must be
// between 1970 and 2261.
//
// The function may be wrong for a while:
//
//   - A time up to a minute before the latest time counts as late. It admits no request that the latest time would
//     refuse.
//   - If the function goes back by more than a minute, the limiter's time continues from the latest time. If the latest
//     time was too far ahead, each key has once got the tokens for the skipped time, at most its limit. Aligned
//     windows, batches and sliding window counters are then off by the time by which the function went back.
//   - If the function then goes ahead by more than a minute, the limiter first subtracts the time by which the function
//     went back. So if there are several wrong times, only the worst one gives keys additional tokens. But if the
//     function was set back for good, and is not called for more than a minute, the limiter's time does not advance for
//     as long.
//   - The limiter's time does not advance while the function returns a time before 1970. Nor does it advance for a time
//     in the second half of the range from the function's first time to April 2262.
func ClockFunc(now func() time.Time) Option {
	return func(c *config) error {
		if now == nil {
			return errors.New("engine: ClockFunc(nil): want a function that returns the time")
		}
		return useClock(clockFunc, now)(c)
	}
}

func useClock(kind clockKind, read func() time.Time) Option {
	return func(c *config) error {
		c.clock, c.read = kind, read
		return nil
	}
}

// slots returns the number of slots of a table that maxKeys keys fill to 0.6.
func (c *config) slots() uint64 {
	n := uint64(c.maxKeys)
	return n + n/3*2 + (n%3*2+2)/3
}

// shardCount returns the number of shards: the option [Shards], or usualShards without that option.
func (c *config) shardCount() int {
	if c.shards > 0 {
		return c.shards
	}
	return c.usualShards()
}

// usualShards returns the largest power of two with at most four shards per processor and at least 4,096 slots per
// shard.
func (c *config) usualShards() int {
	processors := runtime.GOMAXPROCS(0)
	if c.sharedPath != "" {
		processors = sharedProcessors
	}
	n := 1
	for n < 4*processors && n < shard.MaxShards && c.slots() >= uint64(n)*2*4096 {
		n *= 2
	}
	return n
}
