package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

// A SharedTable has the content of the file of [Shared] limiters ([ReadShared]). If the table is in use, its numbers
// are not all from the same instant. A user who can write the file can change all numbers.
type SharedTable struct {
	Version  int       // version of the file's layout
	Bytes    uint64    // of the file
	Made     time.Time // when the file was made; zero if the file system does not know
	Policies []Policy  // the current policies: the limiter's own, and then its tiers
	// Options has the options of [New] that all processes must have in common, and settings that result from several
	// options. If an option was not given, its value is 0.
	Options []struct{ Name, Value string }

	// Stats has the statistics that every limiter of the file returns. Bytes is the length of the file.
	Stats Stats
	// At is the time on the file's timeline by which buckets counted as full. It is the current time if that is known.
	// With [ClockFunc], or if no process has attached since the boot, it is the latest time that the table has seen.
	At    time.Time
	Swept time.Time // end of the last complete sweep, or start of the table; same timeline

	NeverUsed uint64 // slots that no key has used
	Free      uint64 // slots that a key has used and that are free again
	Claimed   uint64 // slots in which a call makes a record, or made one when its process was killed
	Tentative uint64 // slots with a record that may not be the only one of its key
	Live      uint64 // slots with the record of a key
	Indebted  uint64 // live records whose bucket is not full
	Deserted  uint64 // claimed slots of dead processes; the next sweep frees them

	// Attached has the processes that have made a limiter with [Shared] and have not ended. Seat is a number from 0 to
	// 1023. PID is the process id that the process itself sees. In another container, it may have no meaning. For is
	// the time since the process attached.
	Attached []struct {
		Seat int
		PID  uint64
		For  time.Duration
	}
}

// ReadShared reads the file of [Shared] limiters, without a decision or a write, and while other processes write. The
// file must belong to the user of the process, with mode 0600; root may read any user's file. ReadShared takes some
// nanoseconds for each slot that was ever used. It needs Linux.
//
// ReadShared refuses a file for the same reasons as Shared, and for three more. The header has values that no limiter
// of this version writes. The file became shorter during the call. The system does not report which processes are
// attached.
func ReadShared(path string) (SharedTable, error) {
	t, err := openShared(path)
	if err != nil {
		return SharedTable{}, err
	}
	s, err := t.read()
	if err = errors.Join(err, t.Close()); err != nil {
		return SharedTable{}, fmt.Errorf("engine: shared table %q: %w", path, err)
	}
	return s, nil
}

// A sharedTable is a view of the file of shared limiters, for a program without such a limiter. No method may be called
// during or after Close.
type sharedTable struct {
	view         *sharedfile.View
	table        *shard.Table
	hasClockFunc bool // the limiters have a ClockFunc
}

func openShared(path string) (*sharedTable, error) {
	var t sharedTable
	var c config
	view, err := sharedfile.OpenView(path, func(fields []sharedfile.Field) (bytes uint64, err error) {
		if c, err = configOf(fields); err != nil {
			return 0, err
		}
		layout, err := c.layoutFor(samplePolicies(fields))
		if err != nil {
			return 0, err
		}
		return layout.SharedBytes()
	})
	if err == nil {
		if t.table, err = c.tableOf(view); err != nil {
			err = errors.Join(err, view.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("engine: shared table %q: %w", path, err)
	}
	t.view, t.hasClockFunc = view, c.clock == clockFunc
	return &t, nil
}

// samplePolicies returns some policies for which a table is as long as the file with these fields.
func samplePolicies(fields []sharedfile.Field) policySet {
	policy, tiers := BatchRefill(1, time.Second, 1), []Policy(nil) // records without prices, as most policies have
	for _, f := range fields {
		switch {
		case f.Name == fieldAlgorithm && f.Value == Unlimited().Kind():
			policy = Unlimited()
		case f.Name == fieldAlgorithm && f.Value == AlgorithmTokenBucket.String():
			policy = TokenBucket(Per(1, 1), 1)
		case f.Name == fieldTiers && f.Value != "0":
			tiers = []Policy{policy}
		}
	}
	return newPolicySet(policy, tiers)
}

func (c *config) layoutFor(policies policySet) (shard.Config, error) {
	plan, err := policies.plan(nil, c.terms)
	if err != nil {
		return shard.Config{}, err
	}
	return c.table(plan), nil
}

func (c *config) tableOf(view *sharedfile.View) (table *shard.Table, err error) {
	faultErr := view.Read(func() { table, err = c.mapTable(view) })
	return table, errors.Join(faultErr, err)
}

// mapTable does the work of tableOf. The memory must be mapped during the call.
func (c *config) mapTable(view *sharedfile.View) (*shard.Table, error) {
	layout, err := c.layoutFor(samplePolicies(view.Fields()))
	if err != nil {
		return nil, err
	}
	numbers, err := layout.Numbers(view.Memory())
	if err != nil {
		return nil, err
	}
	calendar, err := calendarOf(view.Fields())
	if err != nil {
		return nil, err
	}
	policies, err := parsePolicies(numbers, calendar)
	if err == nil {
		layout, err = c.layoutFor(policies)
	}
	if err != nil {
		return nil, fmt.Errorf("the file's policy: %w", err)
	}
	if err := checkWritten(view.Fields(), c.fields(policies)); err != nil {
		return nil, err
	}
	return shard.Map(layout, shard.Shared{Memory: view.Memory(), Owner: view, Build: policies.builder(c.terms)})
}

func (t *sharedTable) Close() error { return t.view.Close() }

// header returns the facts about a file that do not change, and the latest policies that this view could read.
func (t *sharedTable) header() SharedTable {
	s := SharedTable{Version: sharedfile.LayoutVersion, Bytes: t.view.Bytes(), Made: t.view.Made()}
	_ = t.view.Read(func() { t.table.Plan() }) // the table remembers the latest plan
	s.Policies = slices.Clone(t.table.Known().Source().(*policySet).byTier)
	for _, f := range t.view.Fields() {
		if f.Name != fieldAlgorithm && f.Name != fieldTiers {
			s.Options = append(s.Options, struct{ Name, Value string }(f))
		}
	}
	return s
}

func (t *sharedTable) read() (s SharedTable, err error) {
	s = t.header()
	faultErr := t.view.Read(func() { err = t.count(&s) })
	return s, errors.Join(faultErr, err)
}

// count counts the slots and the seats. The memory must be mapped during the call.
func (t *sharedTable) count(s *SharedTable) error {
	attached, err := t.view.Attached()
	if err != nil {
		return err
	}
	now, ok := t.view.Now()
	for _, a := range attached {
		s.Attached = append(s.Attached, struct {
			Seat int
			PID  uint64
			For  time.Duration
		}{a.Seat, a.PID, max(time.Duration(now-a.Since), 0)})
	}
	if t.hasClockFunc || !ok {
		now = 0
	}
	survey := t.table.Survey(now)
	s.Stats = statsOf(survey.Stats)
	s.Stats.Bytes = t.view.Bytes()
	s.At, s.Swept = time.Unix(0, max(now, survey.Watermark)), time.Unix(0, survey.Swept)
	s.NeverUsed, s.Free, s.Claimed, s.Tentative = survey.NeverUsed, survey.Free, survey.Claimed, survey.Tentative
	s.Live, s.Indebted, s.Deserted = survey.Live, survey.Indebted, survey.Deserted
	return nil
}
