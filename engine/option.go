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

// An Option changes one thing about a limiter at [New].
type Option func(*config) error

// config holds what the options set.
type config struct {
	maxKeys  int
	shards   int // 0: by size and GOMAXPROCS
	overflow OverflowPolicy
	stable   bool
	prefault bool
	interval time.Duration
	file     *sharedfile.File // of Shared, when it is attached
	clock    clockKind
	read     func() time.Time
	tiers    []Policy
	terms    terms
	observer *observer
	shared   string // path of the file, or none
	inFlight bool   // the policy is Concurrency
	replaces bool   // ReplacePolicy: New replaces the policy of the file
}

const (
	// DefaultMaxKeys is the capacity without [MaxKeys].
	DefaultMaxKeys = 1_000_000
	// DefaultSweepInterval is the time between sweeps without [SweepInterval].
	DefaultSweepInterval = 10 * time.Second
)

// MaxKeys sets the capacity of the limiter: how many keys that are not idle it has room for. The default is 1,000,000.
// Memory is 16.1 bytes for each slot and 1/0.6 slots for each key, so 26.9 bytes for each key. [New] allocates it, and
// it is constant from then on. A key whose bucket is full costs nothing: it is forgotten.
//
// A new key finds room until its neighborhood of 32 slots is full; then [Overflow] decides. In a table that was just
// filled with MaxKeys keys, that happens to about one new key in 500. Once keys have come and gone, it happens to about
// one in 1,000. The figures differ from hash to hash.
//
// n is at least 1. New refuses a table that is larger than the machine's memory.
func MaxKeys(n int) Option {
	return func(c *config) error {
		// The upper bound only keeps the number of slots within its type; memory runs out long before.
		if n < 1 || uint64(n) > 1<<56 {
			return fmt.Errorf("engine: MaxKeys(%d): want at least 1 and what memory can hold, at 27 bytes a key", n)
		}
		c.maxKeys = n
		return nil
	}
}

// Shards sets the number of shards, a power of two up to 4,096. Without it New chooses by capacity and GOMAXPROCS. More
// shards spread the counters of rare events. They do not reduce lock contention, since there are no locks.
func Shards(n int) Option {
	return func(c *config) error {
		if n < 1 || n > shard.MaxShards || n&(n-1) != 0 {
			return fmt.Errorf("engine: Shards(%d): want a power of two from 1 to %d", n, shard.MaxShards)
		}
		c.shards = n
		return nil
	}
}

// HashStable makes keys by xxHash64 instead of by a hash with a secret seed. A text then has the same Key in every
// process and on every machine. Use it only for keys that come from people you trust: texts that collide under xxHash64
// are easy to write down, and a client that can choose its key can then drain another client's bucket.
func HashStable() Option {
	return func(c *config) error {
		c.stable = true
		return nil
	}
}

// Tiers adds up to 14 limits to the limiter's policy, such as one for paying users and one for partners. [Key.Tier]
// returns the key under a tier. The limiter's own policy is tier 0, and the first of tiers is tier 1.
//
// All tiers share the table, the algorithm, and each key's record: for a key that moves to another tier, the tokens
// that it has taken still count. Tiers of a token bucket may differ in rate and burst. (A rate that does not fit the
// ticks of the first tier is rounded down, by less than a millionth.) Tiers of the other algorithms may differ in the
// limit only.
//
// Records of token buckets with tiers also say what a token cost: a slot takes 32 bytes, a key 54 ([MaxKeys]). Over any
// time t a key gets at most the highest burst + the highest rate * t of the tiers and quotas under which it was asked
// for, however often they change.
func Tiers(tiers ...Policy) Option {
	return func(c *config) error {
		if err := checkTiers(tiers); err != nil {
			return err
		}
		c.tiers = slices.Clone(tiers)
		return nil
	}
}

// checkTiers checks the number of tiers. The last tier of a plan is reserved: it stands for a tier that the limiter
// does not have.
func checkTiers(tiers []Policy) error {
	if len(tiers) > shard.MaxTiers-2 {
		return fmt.Errorf("engine: Tiers: %d tiers: want at most %d", len(tiers), shard.MaxTiers-2)
	}
	return nil
}

// SweepInterval sets the time between two sweeps, 1ms to 24h; 10s without it. A sweep walks the table in steps of some
// tens of microseconds with a millisecond of rest between them. It counts the keys for [Stats]. In a table that is more
// than half full, it forgets the keys whose bucket was already full at the previous sweep. Requests reclaim slots by
// themselves, so no request waits for a sweep.
func SweepInterval(d time.Duration) Option {
	return func(c *config) error {
		if d < time.Millisecond || d > 24*time.Hour {
			return fmt.Errorf("engine: SweepInterval(%v): want 1ms to 24h", d)
		}
		c.interval = d
		return nil
	}
}

// Prefault makes [New] touch the whole table, so that the first requests do not wait for the system to provide its
// pages. The pages are huge pages if the system has them. Without this option a table takes memory as keys come, in
// small pages until half of them are in use.
func Prefault() Option {
	return func(c *config) error {
		c.prefault = true
		return nil
	}
}

// ClockTSC reads the processor's time stamp counter, calibrated against the system's monotonic clock and checked
// against it every ten seconds. It is the fastest exact clock, and the default where Linux itself trusts the counter.
// Elsewhere, and under testing/synctest, whose time is not the processor's, the limiter falls back to [ClockPrecise].
func ClockTSC() Option { return useClock(clockTSC, nil) }

// ClockPrecise reads Go's monotonic clock for every decision. Use it under testing/synctest.
func ClockPrecise() Option { return useClock(clockPrecise, nil) }

// ClockCoarse reads a word in memory that a goroutine renews every millisecond. It is the cheapest clock and may be
// late, by a millisecond or two on an idle machine and by tens of milliseconds when every processor is busy. If a
// request would be refused for lack of tokens and its wait is at most 100ms, the exact clock checks the refusal first,
// which also renews the word.
//
// On the limiter's timeline nothing is admitted early. A request that a late clock admits was made later, in real time,
// than the time for which it is charged. So the next request may pass sooner after it by that lateness. In any real
// time t a key gets at most burst + rate * (t + lateness), or what a window allows in t + lateness.
func ClockCoarse() Option { return useClock(clockCoarse, nil) }

// ClockFunc makes the limiter call now for the time. now must be safe for concurrent use: every decision and the
// sweeper call it. Its first reading must lie between 1970 and 2261. Use it in tests and for replaying.
//
// The readings of now may be wrong for a while:
//
//   - A reading that is up to a minute earlier than the latest one counts as late: it admits no request that the latest
//     reading would refuse.
//   - If now goes back by more than a minute, the limiter's time continues from the latest reading, so no key waits for
//     that time to come again. If that reading was too far ahead, each key once gets the tokens of the time that was
//     skipped, at most its limit. From then on, whatever follows the clock (aligned windows, batches, the windows of a
//     sliding window counter) is off by as much as now went back.
//   - If now then goes ahead by more than a minute, the limiter first subtracts the time by which now went back. So
//     readings that are wrong again and again, early or late, cost what the worst of them costs, not their sum. If now
//     was set back for good and is not read for more than a minute, time stands still for the same time.
//   - A reading before 1970, or later than half of the time from the first reading to April 2262, is not trusted: time
//     stands still until now returns another.
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

// slots returns the number of slots that hold maxKeys keys at a load of 0.6.
func (c *config) slots() uint64 {
	n := uint64(c.maxKeys)
	return n + n/3*2 + (n%3*2+2)/3
}

// shardCount returns the number of shards asked for, or the largest power of two
// with at most four shards for each processor and at least 4,096 slots in each.
func (c *config) shardCount() int {
	if c.shards > 0 {
		return c.shards
	}
	return c.usualShards()
}

// usualShards returns the number of shards for a table without [Shards].
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
