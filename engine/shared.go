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

// Shared stores the limiter's records in a file, which several processes of this machine can use, and which a process
// finds again after a restart. A decision costs as much as without this option. [New] makes the file if it does not
// exist. A file in /dev/shm is only in memory; a file on a disk survives a reboot. Shared needs Linux. docs/shared.md
// says more.
//
// All processes must have the same policy, [Tiers], [MaxKeys], and other options that affect decisions. Otherwise New
// returns an error that names the first difference. [Limiter.SetPolicy], or New with [ReplacePolicy], changes the
// numbers for all processes. To change anything else, make another file with [CopyShared]. A [SlidingLog] cannot be
// shared. The time zone of a [CalendarWindow] and its rules cannot be changed in a file ([Policy.Kind]).
//
// A process may be killed at any instruction, and no other process waits for it. The next sweep of another process
// frees the slots that the killed process was changing, and releases its tokens of a [Concurrency] limit. Tokens of its
// holds come back only with time.
//
// All processes follow the machine's monotonic clock. If the clocks of two processes differ by d, a key gets at most
// burst + rate * (t + d) within a time t. While the sweepers run, d is at most 30ms, and usually much less. After a
// reboot, the time continues at the wall clock's time, and never goes back. If one process has [ClockFunc], all must
// have it, with functions that return the same time.
//
// A user who can write the file decides what is admitted, and a user who can read it can find keys that share a bucket.
// So the file must belong to the user of the process, with mode 0600. No content of the file can make a process crash,
// hang, or read outside of it. But truncating a file in use kills every process that uses it. New refuses a file of
// another kind, version, machine or length, and one on a network file system if it can detect that. The file stays
// mapped after [Limiter.Close], until the limiter is garbage collected.
func Shared(path string) Option {
	return func(c *config) error {
		if path == "" {
			return errors.New("engine: Shared(\"\"): want the path of a file, such as /dev/shm/api.weir")
		}
		c.sharedPath, c.terms.shared = path, true
		return nil
	}
}

// ReplacePolicy makes New with [Shared] change the policy in the file to the policy of this limiter, as
// [Limiter.SetPolicy] does. If SetPolicy would return an error, New does. Use this option to deploy new numbers. Give
// it only to the process that knows the right numbers: if several processes have different numbers, the last one wins.
func ReplacePolicy() Option {
	return func(c *config) error {
		c.replacePolicy = true
		return nil
	}
}

// sharedProcessors is the number of processors for which a shared table is made. It is fixed, because the processes of
// a table may see different numbers of processors.
const sharedProcessors = 16

type secrets struct{ text, addr, number keyhash.Secret }

// attach returns the table in the file and its hash secrets, and puts the clock on the file's timeline. The secrets are
// nil if the hash has none.
func (c *config) attach(layout shard.Config, clock *clock, policies policySet) (*shard.Table, *secrets, error) {
	fail := func(err error) (*shard.Table, *secrets, error) {
		return nil, nil, fmt.Errorf("engine: Shared(%q): %w", c.sharedPath, err)
	}
	if calendar := policies.base.calendar; calendar != nil && strings.ContainsFunc(calendar.Zone(), unicode.IsControl) {
		return fail(fmt.Errorf("%v: a file has the name of the time zone: want one without control characters", policies.base))
	}
	if policies.base.algorithm == AlgorithmSlidingLog {
		return fail(fmt.Errorf("%v: logs cannot be shared: want a SlidingWindow, or a limiter without Shared", policies.base))
	}
	bytes, err := layout.SharedBytes()
	if err != nil {
		return fail(fmt.Errorf("MaxKeys(%d): %w", c.maxKeys, err))
	}
	file, err := sharedfile.Open(c.sharedPath, sharedfile.Spec{
		Fields: c.fields(policies), Bytes: bytes, Start: layout.Start,
		Begin: func(memory []byte) error { return layout.Begin(memory, policies.numbers()) },
		Mark:  layout.Mark, Settle: layout.Settle, Boot: layout.Boot,
	})
	if err != nil {
		return fail(err)
	}
	machine := clock.machine
	if clock.kind == clockFunc {
		machine = nil // all processes have the function as their clock
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
	if c.stableHash {
		return table, nil, nil
	}
	secret := keyhash.Secret(file.Secret())
	return table, &secrets{secret.Derive(0), secret.Derive(1), secret.Derive(2)}, nil
}

// enter puts the clock on the timeline of a shared table. It refuses a table that is too far ahead, because all
// processes would decide at that time.
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

// fields returns the settings that all processes of a shared table must have in common as long as the file exists.
func (c *config) fields(policies policySet) []sharedfile.Field {
	hash, clock := "with the file's secret", "the machine's"
	if c.stableHash {
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
		{Name: "tiers", Value: fmt.Sprint(len(policies.byTier) - 1)},
	}
}
