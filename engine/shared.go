package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/keyhash"
	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

// Shared keeps the limiter's records in a file that other processes of this machine have mapped, too. All of them
// decide by the same records, at the cost of a limiter of one's own, and a process that is started again finds them as
// they were. [New] makes the file if there is none, and attaches to it otherwise. In /dev/shm it is memory; on a disk
// it outlives a boot.
//
// All processes must have the same policy, [Tiers], [MaxKeys], and the same options that say how is decided; New
// returns an error that names the first field by which they differ. The numbers of the policy and of the tiers are
// changed for all by [Limiter.SetPolicy] of any, or by New with [ReplacePolicy]. To change anything else, make
// another file with [CopyShared], which carries over what the keys owe. New of a [SlidingLog] returns an error.
//
// A process may be killed at any instruction: nobody waits for it, and the next sweep of any other process frees what
// it was at, and what it had in flight ([Concurrency]). What it held ([Limiter.Hold]) is not given back but by time.
//
// All processes count time on one timeline, by the machine's monotonic clock. Where two clocks differ by d, a key gets
// at most burst + rate * (t + d) through in a time t. As long as their sweepers run, d is at most 30ms, one early and
// one late, and much less as a rule: a process whose counter is off by more than 15ms gives it up. After a boot the
// time goes on as the wall clock says, and never goes back. A clock that is further ahead, such as a counter that went
// on while the machine slept, moves nobody else's time. Processes with [ClockFunc] must all have it, and functions
// that tell the same time.
//
// Whoever can write the file decides what is admitted. Whoever can read it can find keys that share a bucket. So it
// must belong to the user of the process, with mode 0600. No content makes a process crash, hang, or read elsewhere.
// But a file that is made shorter while it is in use kills every process that uses it. A file of another kind, version,
// machine or length is refused, and so is one on a network file system, as far as that can be detected.
//
// [Limiter.Close] stops the sweeper. The process has the file until the limiter is collected, or the process ends.
// Shared is for Linux. docs/shared.md says more.
func Shared(path string) Option {
	return func(c *config) error {
		if path == "" {
			return errors.New("engine: Shared(\"\"): want the path of a file, such as /dev/shm/api.weir")
		}
		c.shared, c.terms.shared = path, true
		return nil
	}
}

// ReplacePolicy makes New of a limiter with [Shared] change the policy of the file to its own, as [Limiter.SetPolicy]
// does, where they differ: the way to deploy other numbers. Each key keeps what it has taken, and
// processes that have the file follow. What SetPolicy does not change is an error, as without it. Give it to the
// process that knows the numbers: of several that do not agree the last one decides.
func ReplacePolicy() Option {
	return func(c *config) error {
		c.replaces = true
		return nil
	}
}

// sharedProcessors is how many processors a shared table is made for: its processes may see different numbers of them.
const sharedProcessors = 16

// secrets are what the keys of a shared table are hashed with, one for each kind of key.
type secrets struct{ text, addr, number keyhash.Secret }

// attach returns the table in the file, and what its keys are hashed with, or nil if that is no secret. It puts the
// clock on the timeline of the file.
func (c *config) attach(layout shard.Config, clock *clock, policies policies) (*shard.Table, *secrets, error) {
	fail := func(err error) (*shard.Table, *secrets, error) {
		return nil, nil, fmt.Errorf("engine: Shared(%q): %w", c.shared, err)
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
		machine = nil // the function is the clock of all
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

// enter puts the clock on the timeline of a shared table. The error says that the table is ahead of that: no process
// of this version can have moved it there, and all would decide at that time until it is reached.
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

// fields returns what all processes of a shared table must agree on for as long as there is the file.
func (c *config) fields(policies policies) []sharedfile.Field {
	hash, clock := "with the file's secret", "the machine's"
	if c.stable {
		hash = "xxHash64 (HashStable)"
	}
	if c.clock == clockFunc {
		clock = "a function's (ClockFunc)"
	}
	return []sharedfile.Field{
		{Name: "algorithm", Value: policies.base.kind()},
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
