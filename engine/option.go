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

// An Option changes one setting of a limiter. It is an argument of [New].
type Option func(*config) error

// config has the settings that options change.
type config struct {
	maxKeys  int
	shards   int // 0 means that New chooses by size and GOMAXPROCS
	overflow OverflowPolicy
	stable   bool
	prefault bool
	interval time.Duration
	file     *sharedfile.File // with Shared, the file, once it is attached
	clock    clockKind
	read     func() time.Time
	tiers    []Policy
	terms    terms
	observer *observer
	shared   string // path of the file; empty without Shared
	inFlight bool   // the policy is Concurrency
	replaces bool   // with ReplacePolicy, New replaces the policy of the file
}

const (
	// DefaultMaxKeys is the capacity without [MaxKeys].
	DefaultMaxKeys = 1_000_000
	// DefaultSweepInterval is the time between sweeps without [SweepInterval].
	DefaultSweepInterval = 10 * time.Second
)

// MaxKeys sets the capacity of the limiter: the number of keys that are not idle for which it has room. The default is
// 1,000,000. The table needs 16.1 bytes for each slot and has 1/0.6 slots for each key, so it needs 26.9 bytes for each
// key. [New] allocates this memory, and it does not change after that. A key whose bucket is full needs no room,
// because it is forgotten.
//
// A new key finds room as long as its neighborhood of 32 slots is not full. If it is full, [Overflow] decides. In a
// table that was just filled with MaxKeys keys, that happens to about one new key in 500. After keys have come and
// gone, it happens to about one new key in 1,000. These numbers differ from hash to hash.
//
// The parameter n is at least 1. New refuses a table that is larger than the machine's memory.
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

// Shards sets the number of shards, a power of two up to 4,096. Without this option, New chooses a number by capacity
// and GOMAXPROCS. The shards have separate counters of rare events, so more shards mean less contention for these
// counters. They do not reduce lock contention, because there are no locks.
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
// process and on every machine. Use it only for keys that come from people you trust. It is easy to find texts that
// collide under xxHash64, so a client that can choose its key can drain another client's bucket.
func HashStable() Option {
	return func(c *config) error {
		c.stable = true
		return nil
	}
}

// Tiers adds up to 14 limits to the limiter's policy, such as one for paying users and one for partners. [Key.Tier]
// returns the key under a tier. The limiter's own policy is tier 0, and the first policy in tiers is tier 1.
//
// All tiers share the table, the algorithm, and the record of each key. So if a key moves to another tier, the tokens
// that it has taken still count. Tiers of a token bucket may differ in rate and burst. (A rate that does not fit the
// ticks of the limiter's own policy is rounded down, by less than a millionth.) Tiers of the other algorithms may
// differ only in the limit.
//
// If token buckets have tiers, each record also stores what a token cost: a slot takes 32 bytes, a key 54 ([MaxKeys]).
// A key may change between tiers and quotas any number of times. Over any time t it gets at most B + R * t, where B is
// the highest burst and R is the highest rate of the tiers and quotas that its requests had.
func Tiers(tiers ...Policy) Option {
	return func(c *config) error {
		if err := checkTiers(tiers); err != nil {
			return err
		}
		c.tiers = slices.Clone(tiers)
		return nil
	}
}

// checkTiers checks the number of tiers. The last tier number of a plan is reserved: it means a tier that the limiter
// does not have.
func checkTiers(tiers []Policy) error {
	if len(tiers) > shard.MaxTiers-2 {
		return fmt.Errorf("engine: Tiers: %d tiers: want at most %d", len(tiers), shard.MaxTiers-2)
	}
	return nil
}

// SweepInterval sets the time between two sweeps, 1ms to 24h. The default is 10s. A sweep goes through the table in
// steps of some tens of microseconds, and rests for a millisecond between two steps. The sweep counts the keys for
// [Stats]. In a table that is more than half full, it also forgets the keys whose bucket was already full at the
// previous sweep. Requests themselves reclaim slots when they need them, so no request waits for a sweep.
func SweepInterval(d time.Duration) Option {
	return func(c *config) error {
		if d < time.Millisecond || d > 24*time.Hour {
			return fmt.Errorf("engine: SweepInterval(%v): want 1ms to 24h", d)
		}
		c.interval = d
		return nil
	}
}

// Prefault makes [New] touch the whole table, so that the first requests do not wait until the system provides its
// pages. The pages are huge pages if the system has them. Without this option, a table takes memory from the system
// when keys need it. It then uses small pages until half of its pages are in use.
func Prefault() Option {
	return func(c *config) error {
		c.prefault = true
		return nil
	}
}

// ClockTSC reads the processor's time stamp counter, which is calibrated with the system's monotonic clock and compared
// with it every ten seconds. It is the fastest exact clock, and it is the default if Linux itself trusts the counter.
// Otherwise the limiter uses [ClockPrecise] instead. It also uses ClockPrecise under testing/synctest, because the time
// there is not the processor's.
func ClockTSC() Option { return useClock(clockTSC, nil) }

// ClockPrecise reads Go's monotonic clock for every decision. Use it under testing/synctest.
func ClockPrecise() Option { return useClock(clockPrecise, nil) }

// ClockCoarse reads a word in memory that a goroutine renews every millisecond. It is the cheapest clock, but it may be
// late: by a millisecond or two on an idle machine, and by tens of milliseconds when every processor is busy. If a
// request would be refused for lack of tokens and its wait is at most 100ms, the limiter first decides it again with
// the exact clock. This reading of the exact clock also renews the word.
//
// On the limiter's timeline, no request is admitted early. But if the clock is late when it admits a request, the
// request is charged for an earlier time than its real time. So the next request may be admitted earlier, by that
// lateness. Within any real time t, a key gets at most burst + rate * (t + lateness), or what a window allows in t +
// lateness.
func ClockCoarse() Option { return useClock(clockCoarse, nil) }

// ClockFunc makes the limiter get its time from the function in the parameter now. This function must be safe for
// concurrent use, because every decision and the sweeper call it. The first time that it returns must be between 1970
// and 2261. Use ClockFunc in tests, and to replay requests of the past.
//
// The times that this function returns are called readings here. They may be wrong for a while:
//
//   - A reading that is up to a minute earlier than the latest one counts as late: it admits no request that the latest
//     reading would refuse.
//   - If the function goes back by more than a minute, the limiter's time continues from the latest reading, so no key
//     waits until the function reaches that reading again. If that reading was too far ahead, each key once gets the
//     tokens for the time that was skipped, at most its limit. After that, everything that follows the clock (aligned
//     windows, batches, the windows of a sliding window counter) is off by the time by which the function went back.
//   - If the function then goes ahead by more than a minute, the limiter first subtracts the time by which the function
//     went back. So if readings are wrong again and again, early or late, keys get the additional tokens of the worst
//     reading only, not of all of them together. If the function was set back for good, and the limiter does not read
//     it for more than a minute, the limiter's time stands still for the same time.
//   - A reading before 1970 is not trusted. Neither is a reading in the second half of the time from the first reading
//     to April 2262. The limiter's time stands still until the function returns another time.
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

// slots returns the number of slots of a table that is filled to 0.6 by maxKeys keys.
func (c *config) slots() uint64 {
	n := uint64(c.maxKeys)
	return n + n/3*2 + (n%3*2+2)/3
}

// shardCount returns the number of shards that [Shards] has set. Without Shards, it returns the largest power of two
// for which two conditions are true: there are at most four shards for each processor, and each shard has at least
// 4,096 slots.
func (c *config) shardCount() int {
	if c.shards > 0 {
		return c.shards
	}
	return c.usualShards()
}

// usualShards returns the number of shards for a limiter without [Shards].
func (c *config) usualShards() int {
	processors := runtime.GOMAXPROCS(0)
	if c.shared != "" {
		processors = sharedProcessors
	}
	n := 1
	for n < 4*processors && n < shard.MaxShards && c.slots() >= uint64(n)*2*4096 {
		n *= 2
	}
	return n
}
