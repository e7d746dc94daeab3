package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/weir-go/weir/internal/keyhash"
	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

// Shared keeps the limiter's records in a file that other processes of this machine map, too. All processes decide by
// the same records. A decision costs as much as in a private limiter. A process that restarts finds the records
// unchanged. [New] makes the file if it does not exist, and attaches to it otherwise. In /dev/shm the file is memory
// only; on a disk it survives a reboot.
//
// All processes must have the same policy, [Tiers], [MaxKeys], and other options that affect decisions. New returns an
// error that names the first field that differs. [Limiter.SetPolicy] in any process, or New with [ReplacePolicy],
// changes the numbers of the policy and of the tiers for all processes. To change anything else, make another file with
// [CopyShared], which carries over what the keys owe. New returns an error for a [SlidingLog]. The time zone of a
// [CalendarWindow], and its rules as the program knows them, cannot be changed in a file ([Policy.Kind]).
//
// A process may be killed at any instruction. No process waits for it, and the next sweep of any other process frees
// the slots that it was changing and the tokens that it had in flight ([Concurrency]). Tokens that it held
// ([Limiter.Hold]) only come back by time.
//
// All processes count time on one timeline, by the machine's monotonic clock. Where two clocks differ by d, a key gets
// at most burst + rate * (t + d) in a time t. As long as their sweepers run, d is at most 30ms, and usually much less:
// a process whose counter is off by more than 15ms, early or late, gives the counter up. After a reboot the time
// continues by the wall clock, and never goes back. A clock that is further ahead, such as a counter that kept running
// while the machine slept, does not move the time of other processes. If one process has [ClockFunc], all must have it,
// with functions that return the same time.
//
// Whoever can write the file decides what is admitted, and whoever can read it can find keys that share a bucket. So
// the file must belong to the user of the process, with mode 0600. No content of the file makes a process crash, hang,
// or read outside of it. But truncating a file that is in use kills every process that uses it. New refuses a file of
// another kind, version, machine or length. It also refuses a file on a network file system, as far as it can detect
// that.
//
// [Limiter.Close] stops the sweeper. The process keeps the file mapped until the limiter is collected or the process
// ends. Shared needs Linux. docs/shared.md says more.
func Shared(path string) Option {
	return func(c *config) error {
		if path == "" {
			return errors.New("engine: Shared(\"\"): want the path of a file, such as /dev/shm/api.weir")
		}
		c.shared, c.terms.shared = path, true
		return nil
	}
}

// ReplacePolicy lets New of a limiter with [Shared] change the policy of the file to its own, as [Limiter.SetPolicy]
// does, if they differ. Use it to deploy new numbers. For each key, the tokens that it has taken still count, and the
// other processes of the file follow. A difference that SetPolicy cannot change is an error, as without this option.
// Give the option to the process that knows the right numbers: if several processes disagree, the last one wins.
func ReplacePolicy() Option {
	return func(c *config) error {
		c.replaces = true
		return nil
	}
}

// sharedProcessors is the number of processors that a shared table is made for, because its processes may see different
// numbers.
const sharedProcessors = 16

// secrets are the hash secrets of a shared table, one for each kind of key.
type secrets struct{ text, addr, number keyhash.Secret }

// attach returns the table in the file and its hash secrets, or nil secrets if the hash has none. It puts the clock on
// the timeline of the file.
func (c *config) attach(layout shard.Config, clock *clock, policies policies) (*shard.Table, *secrets, error) {
	fail := func(err error) (*shard.Table, *secrets, error) {
		return nil, nil, fmt.Errorf("engine: Shared(%q): %w", c.shared, err)
	}
	if of := policies.base.calendar; of != nil && strings.ContainsFunc(of.Zone(), unicode.IsControl) {
		return fail(fmt.Errorf("%v: a file has the name of the time zone: want one without control characters", policies.base))
	}
	if policies.base.algorithm == AlgorithmSlidingLog {
		return fail(fmt.Errorf("%v: logs cannot be shared: want a SlidingWindow, or a limiter without Shared", policies.base))
	}
	bytes, err := layout.SharedBytes()
	if err != nil {
		return fail(fmt.Errorf("MaxKeys(%d): %w", c.maxKeys, err))
	}
	file, err := sharedfile.Open(c.shared, sharedfile.Spec{
		Fields: c.fields(policies), Bytes: bytes, Start: layout.Start,
		Begin: func(memory []byte) error { return layout.Begin(memory, policies.numbers()) },
		Mark:  layout.Mark, Settle: layout.Settle, Boot: layout.Boot,
	})
	if err != nil {
		return fail(err)
	}
	machine := clock.machine
	if clock.kind == clockFunc {
		machine = nil // the function is the clock of all processes
	}
	table, err := shard.Map(layout, shard.Shared{
		Memory: file.Memory(), Owner: file, Build: policies.builder(c.terms), Clock: machine,
		Now: clock.latest,
	})
	if err == nil {
		err = clock.enter(table, file.Now)
	}
	if err == nil {
		err = c.agree(table, layout.Plan, clock)
	}
	if err == nil {
		table.Reap(clock.nanos())
	}
	if err != nil {
		return fail(errors.Join(err, file.Close()))
	}
	c.file = file
	if c.stable {
		return table, nil, nil
	}
	secret := keyhash.Secret(file.Secret())
	return table, &secrets{secret.Derive(0), secret.Derive(1), secret.Derive(2)}, nil
}

// enter puts the clock on the timeline of a shared table. It returns an error if the time of the table is ahead of the
// timeline: no process of this version can have moved it there, and all processes would decide at that time until it is
// reached.
func (c *clock) enter(table *shard.Table, timeline func() int64) error {
	if c.kind == clockFunc {
		c.function.latest.Store(max(c.origin, table.Watermark()))
		return nil
	}
	c.join(timeline)
	if ahead := time.Duration(table.Watermark() - c.machine()); ahead > shard.MaxTrust {
		return fmt.Errorf("time: the table is %v ahead of the machine's clock, so no bucket would refill until then: the file "+
			"is damaged, or a process of an older version of weir had a clock that ran ahead: remove the file when no process uses "+
			"it: every bucket is full then", ahead.Round(time.Second))
	}
	return nil
}

// fields returns the settings on which all processes of a shared table must agree for as long as the file exists.
func (c *config) fields(policies policies) []sharedfile.Field {
	hash, clock := "with the file's secret", "the machine's"
	if c.stable {
		hash = "xxHash64 (HashStable)"
	}
	if c.clock == clockFunc {
		clock = "a function's (ClockFunc)"
	}
	return []sharedfile.Field{
		{Name: "algorithm", Value: policies.base.Kind()},
		{Name: "MaxKeys", Value: fmt.Sprint(c.maxKeys)},
		{Name: "Shards", Value: fmt.Sprint(c.shardCount())},
		{Name: "Overflow", Value: c.overflow.String()},
		{Name: "hash", Value: hash},
		{Name: "time", Value: clock},
		{Name: "MaxQuota", Value: fmt.Sprint(c.terms.maxQuota)},
		{Name: "MaxDebt", Value: fmt.Sprint(c.terms.maxDebt)},
		{Name: "ChargeRefusals", Value: fmt.Sprint(c.terms.refusals)},
		{Name: "tiers", Value: fmt.Sprint(len(policies.all) - 1)},
	}
}
