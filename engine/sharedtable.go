package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

// A SharedTable is the file of limiters that were made with [Shared], as it is seen from outside: it decides nothing,
// takes no seat among the processes of the file, and writes nothing. Make one with [OpenSharedTable].
type SharedTable struct {
	view     *sharedfile.View
	table    *shard.Table
	function bool // the time is a function's
}

// OpenSharedTable opens the file at a path to look at it. The file must belong to the user of the process, with mode
// 0600; root may look at anybody's. It is refused with an error that says why in the cases in which [Shared] refuses
// it, and when its header says what no limiter of this version has written. Whatever is in the table is read safely,
// also while processes write. Close the table when it is done with. OpenSharedTable is for Linux.
func OpenSharedTable(path string) (*SharedTable, error) {
	var t SharedTable
	var c config
	view, err := sharedfile.Look(path, func(fields []sharedfile.Field) (bytes uint64, err error) {
		if c, err = configOf(fields); err != nil {
			return 0, err
		}
		layout, err := c.viewed(anyOf(fields))
		if err != nil {
			return 0, err
		}
		return layout.SharedBytes()
	})
	if err == nil {
		if t.table, err = c.view(view); err != nil {
			err = errors.Join(err, view.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("engine: OpenSharedTable(%q): %w", path, err)
	}
	t.view, t.function = view, c.clock == clockFunc
	return &t, nil
}

// anyOf returns policies with which a table is as long as with those of a file that has the fields.
func anyOf(fields []sharedfile.Field) policies {
	any := policiesOf(Unlimited(), nil)
	for _, f := range fields {
		if f.Name == fieldAlgorithm && f.Value != any.base.kind() {
			return policiesOf(TokenBucket(Per(1, 1), 1), nil) // whose records have no prices, as those of all others
		}
	}
	return any
}

// viewed returns how a table of the policies lies in a file.
func (c *config) viewed(policies policies) (shard.Config, error) {
	plan, err := policies.plan(nil, c.terms)
	if err != nil {
		return shard.Config{}, err
	}
	return c.table(plan), nil
}

// view returns the table of which a view has the memory.
func (c *config) view(view *sharedfile.View) (table *shard.Table, err error) {
	faulted := view.Read(func() { table, err = c.mapped(view) })
	return table, errors.Join(faulted, err)
}

// mapped is view while the memory is there.
func (c *config) mapped(view *sharedfile.View) (*shard.Table, error) {
	layout, err := c.viewed(anyOf(view.Fields()))
	if err != nil {
		return nil, err
	}
	numbers, err := layout.Numbers(view.Memory())
	if err != nil {
		return nil, err
	}
	policies, err := policiesOfNumbers(numbers)
	if err == nil {
		layout, err = c.viewed(policies)
	}
	if err != nil {
		return nil, fmt.Errorf("the file's policy: %w", err)
	}
	if err := written(view.Fields(), c.fields(policies)); err != nil {
		return nil, err
	}
	return shard.Map(layout, shard.Shared{Memory: view.Memory(), Owner: view, Build: policies.builder(c.terms)})
}

// Close gives the file up. No other method may be called while it runs, or after it.
func (t *SharedTable) Close() error { return t.view.Close() }

// A SharedHeader is what does not change while a file is there, but for the policies.
type SharedHeader struct {
	Version  int       // of the file's layout
	Bytes    uint64    // of the file
	Made     time.Time // by the file system; zero if that does not tell
	Policies []Policy  // the limiter's own and its tiers, as they are now
	// Options are those by which all processes must agree, by name; the value is 0 where the option was not given.
	Options []SharedOption
}

// A SharedOption is an option of [New], or what follows from several, as the file has it.
type SharedOption struct{ Name, Value string }

// Header returns what the file says of the table. If it was made shorter the policies are the latest that were seen.
func (t *SharedTable) Header() SharedHeader {
	h := SharedHeader{Version: sharedfile.LayoutVersion, Bytes: t.view.Bytes(), Made: t.view.Made()}
	_ = t.view.Read(func() { t.table.Plan() }) // which remembers what it has seen
	h.Policies = slices.Clone(t.table.Known().Source().(*policies).all)
	for _, f := range t.view.Fields() {
		if f.Name != fieldAlgorithm && f.Name != fieldTiers {
			h.Options = append(h.Options, SharedOption{f.Name, f.Value})
		}
	}
	return h
}

// SharedStats is what is in a shared table. While it is used the numbers are not all of one instant, and whoever can
// write the file can make them anything.
type SharedStats struct {
	// Stats are those that every limiter of the file returns, but for Bytes: that is the length of the file.
	Stats
	// At is the time by which keys were judged, on the timeline of the file. It is the present one where that is
	// known: not if no process has attached since the machine was booted, nor if the time is a function's
	// ([ClockFunc]). Then it is the latest that the table has seen.
	At    time.Time
	Swept time.Time // the last complete sweep, or when the table was begun; on the same timeline

	NeverUsed uint64 // slots that no key ever had
	Free      uint64 // slots that a key had
	Claimed   uint64 // slots in which a call makes a record, or did until its process was killed
	Tentative uint64 // slots of which it is not decided yet whether their record is the key's only one
	Live      uint64 // slots with a key's record
	Indebted  uint64 // keys whose bucket is not full: some of the live records
	Deserted  uint64 // claims of processes that are dead: some of those claimed, until the next sweep frees them

	Attached []SharedProcess // by seat
}

// A SharedProcess is an attachment: a process that has made a limiter with [Shared] and has not ended.
type SharedProcess struct {
	Seat int           // 0 to 1023
	PID  uint64        // as the process saw itself: from another container the number may mean nothing
	For  time.Duration // since it has attached
}

// Stats looks at the table now. It takes some nanoseconds for each slot that was ever used. An error says that the
// file was made shorter meanwhile, or that the system does not tell which processes are attached.
func (t *SharedTable) Stats() (s SharedStats, err error) {
	if faulted := t.view.Read(func() { s, err = t.stats() }); faulted != nil {
		return SharedStats{}, faulted
	}
	return s, err
}

// stats is Stats while the memory is there.
func (t *SharedTable) stats() (SharedStats, error) {
	attached, err := t.view.Attached()
	if err != nil {
		return SharedStats{}, err
	}
	now, known := t.view.Now()
	processes := make([]SharedProcess, len(attached))
	for i, a := range attached {
		processes[i] = SharedProcess{a.Seat, a.PID, max(time.Duration(now-a.Since), 0)}
	}
	if t.function || !known {
		now = 0
	}
	s := t.table.Survey(now)
	stats := statsOf(s.Stats)
	stats.Bytes = t.view.Bytes()
	return SharedStats{
		Stats: stats, At: time.Unix(0, max(now, s.Watermark)), Swept: time.Unix(0, s.Swept),
		NeverUsed: s.NeverUsed, Free: s.Free, Claimed: s.Claimed, Tentative: s.Tentative, Live: s.Live,
		Indebted: s.Indebted, Deserted: s.Deserted, Attached: processes,
	}, nil
}
