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

// config is what the options fill in.
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
	inFlight bool   // it is one of what is in flight
	replaces bool   // the policy of that file
}

const (
	// DefaultMaxKeys is the capacity without [MaxKeys].
	DefaultMaxKeys = 1_000_000
	// DefaultSweepInterval is the time between sweeps without [SweepInterval].
	DefaultSweepInterval = 10 * time.Second
)

// MaxKeys sets how many keys that are not idle the limiter is made for; 1,000,000
// without it. Memory is 16.1 bytes for each slot and 1/0.6 slots for each key, 26.9
// bytes a key, allocated by [New] and constant from then on. A key whose bucket is
// full costs nothing: it is forgotten.
//
// More keys than that fit until their neighbourhood of 32 slots is full; then
// [Overflow] decides. At MaxKeys keys that happens to about one new key in 500 in a table that was just filled, and to
// one in 1,000 or more once keys have come and gone.
//
// n is at least 1; what the machine's memory cannot hold is refused by New.
func MaxKeys(n int) Option {
	return func(c *config) error {
		// The upper bound only keeps the slots countable; memory decides before.
		if n < 1 || uint64(n) > 1<<56 {
			return fmt.Errorf("engine: MaxKeys(%d): want at least 1 and what memory can hold, at 27 bytes a key", n)
		}
		c.maxKeys = n
		return nil
	}
}

// Shards sets the number of shards, a power of two up to 4,096. Without it New
// chooses by capacity and GOMAXPROCS. More shards spread the counters of rare
// events. They divide no lock, since there is none.
func Shards(n int) Option {
	return func(c *config) error {
		if n < 1 || n > shard.MaxShards || n&(n-1) != 0 {
			return fmt.Errorf("engine: Shards(%d): want a power of two from 1 to %d", n, shard.MaxShards)
		}
		c.shards = n
		return nil
	}
}

// HashStable makes keys by xxHash64 instead of by a hash with a secret seed. Keys
// then mean the same in every process and on every machine. Use it only for keys
// that come from people you trust: texts that collide under xxHash64 are easy to
// write down, and a client that can choose its key can then drain another's bucket.
func HashStable() Option {
	return func(c *config) error {
		c.stable = true
		return nil
	}
}

// Tiers adds up to 14 limits to the limiter's policy: a tier for paying users, say, and one for
// partners. [Key.Tier] returns the key under one of them. The limiter's own policy is tier 0, and
// the first of tiers is tier 1.
//
// All tiers share the table, the algorithm, and each key's record: a key that moves to another tier keeps the tokens
// that it has taken. Tiers of a token bucket may differ in rate and burst (the rate is rounded down, by less than a
// millionth, if it does not go into the first one's clock), of the others in the limit only.
//
// Records of token buckets with tiers say what a token cost: 32 bytes a slot, 54 a key ([MaxKeys]). Over any time t a
// key gets at most the highest burst + the highest rate * t of the tiers and quotas that it was asked under, however
// often they change.
func Tiers(tiers ...Policy) Option {
	return func(c *config) error {
		if err := checkTiers(tiers); err != nil {
			return err
		}
		c.tiers = slices.Clone(tiers)
		return nil
	}
}

// checkTiers bounds how many tiers there are. The last one of a plan is the one that no limiter has.
func checkTiers(tiers []Policy) error {
	if len(tiers) > shard.MaxTiers-2 {
		return fmt.Errorf("engine: Tiers: %d tiers: want at most %d", len(tiers), shard.MaxTiers-2)
	}
	return nil
}

// SweepInterval sets the time between two sweeps, 1ms to 24h; 10s without it. A
// sweep walks the table in steps of some tens of microseconds with a millisecond
// of rest between them. It counts the keys for [Stats]. In a table of which more than half is
// used it forgets the keys whose bucket was full at the sweep before already. Requests reclaim slots by
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

// Prefault makes [New] touch the whole table, so that the first requests do not
// wait for the system to provide its pages, huge ones if it has them. Without it a
// table takes memory as keys come, in small pages until half of them are in use.
func Prefault() Option {
	return func(c *config) error {
		c.prefault = true
		return nil
	}
}

// ClockTSC reads the processor's time stamp counter, calibrated against the
// system's monotonic clock and checked against it every ten seconds. It is the
// fastest exact clock and the default where Linux itself trusts the counter. Where
// it does not, and under testing/synctest, whose time is not the processor's, the
// limiter falls back to [ClockPrecise].
func ClockTSC() Option { return useClock(clockTSC, nil) }

// ClockPrecise reads Go's monotonic clock for every decision. It is the clock for
// testing/synctest.
func ClockPrecise() Option { return useClock(clockPrecise, nil) }

// ClockCoarse reads a word in memory that a goroutine renews every millisecond.
// It is the cheapest clock and may be late, by a millisecond or two on an idle
// machine and by tens of milliseconds when every processor is busy. A refusal for want of tokens whose wait is
// within 100ms is checked with the exact clock before it stands, and the word renewed by that.
//
// On the limiter's timeline nothing is admitted early. In real time a request that a late clock admits was made
// later than it was charged for, so the next may pass sooner after it by that lateness: in any real time t a key gets
// at most burst + rate * (t + lateness) through, or what a window allows in t + lateness.
func ClockCoarse() Option { return useClock(clockCoarse, nil) }

// ClockFunc makes the limiter ask now for the time. now must be safe for
// concurrent use: every decision and the sweeper call it. Its first reading must lie
// between 1970 and 2261. Use it in tests and for replaying.
//
// now may be wrong for a while. A reading that is earlier than the latest by up to a minute counts as late: it lets
// nothing through that the latest would refuse. If now goes back by more, the limiter's time goes on from the latest
// reading. So a leap ahead that is taken back gives a key what the time leapt over would have given it, at most its
// limit, once; and no key waits for the time of the leap to come again. (What begins with the clock, aligned windows,
// batches and the windows of a sliding window counter, is then off the clock by as much as now went back.) If now then
// goes ahead by more than a minute, that makes up first for what it went back: so readings that are wrong again and
// again, early or late, cost what the worst of them cost, not their sum. (Time stands still so long if now was set
// back for good, and goes unread for more than a minute.) A reading before 1970, or later than half of the time from
// the first reading to April 2262, is not trusted: time stands still until now reads another.
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

// slots returns how many slots hold maxKeys keys at a load of 0.6.
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

// usualShards returns the number of shards where none was asked for.
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
