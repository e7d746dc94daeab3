//go:build !explore

package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

func bucketNumbers(burst uint64) []uint64 { return []uint64{1, uint64(time.Second), burst} }

// TestReplaceIsFollowed (I1): a process follows a plan that another process has set, and taken tokens still count.
// After two missed replacements, the plan that the process knew has the same tag as the current plan. The process must
// not use the old plan as the current one.
func TestReplaceIsFollowed(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 8)), Refuse)
	cfg.Plan.SetSource(made{kinds[0], bucketNumbers(8)})
	memory := sharedMemory(t, cfg)
	one, sleeper := mapped(t, cfg, memory, ownerOf{1, []uint64{2}}), mapped(t, cfg, memory, ownerOf{2, []uint64{1}})
	p := one.Find(7)
	require.Equal(t, Admitted, sleeper.Take(p, start, 4, 0).Verdict)
	for i, burst := range []uint64{16, 4} {
		require.True(t, one.Replace(bucketNumbers(burst), clockAt(start)))
		assert.EqualValues(t, i+2, one.Plan().number)
		assert.EqualValues(t, burst, one.Plan().Quota(0).Tokens)
	}
	assert.Equal(t, sleeper.plan.Load().live, one.Plan().live)
	assert.EqualValues(t, 8, sleeper.plan.Load().Quota(0).Tokens)
	assert.Equal(t, Refused, sleeper.Take(p, start+10, 1, 0).Verdict, "all four are taken")
	assert.Equal(t, Admitted, sleeper.Take(p, start+2*second, 2, 0).Verdict)
	assert.Equal(t, TooMuch, sleeper.Take(p, start+2*second, 5, 0).Verdict)
	numbers, err := cfg.Numbers(memory)
	require.NoError(t, err)
	assert.Equal(t, bucketNumbers(4), numbers)
	assert.ErrorContains(t, cfg.Begin(memory, make([]uint64, MaxNumbers+1)), "a plan of 128 numbers: want at most 127")
	_, err = cfg.Numbers(memory[:8])
	assert.ErrorContains(t, err, "want")
}

// TestAPlanOfLongAgoJudgesNoRecord (I7): a process that was suspended during two replacements claims no record by the
// plan that it knew. By the shorter ticks of that plan, an indebted record would look idle.
func TestAPlanOfLongAgoJudgesNoRecord(t *testing.T) {
	const now = start + second
	fine, err := atomicbucket.NewTokenBucket(16, 17, 8)
	require.NoError(t, err)
	cfg := sharedConfig(planOf(t, fine), Refuse)
	cfg.Plan.SetSource(made{kinds[0], []uint64{16, 17, 8}})
	memory := sharedMemory(t, cfg)
	one, sleeper := mapped(t, cfg, memory, ownerOf{1, []uint64{2}}), mapped(t, cfg, memory, ownerOf{2, []uint64{1}})
	p := one.Find(7)
	for range 2 {
		require.True(t, one.Replace(bucketNumbers(8), clockAt(now)))
	}
	one.Sweep(now, nil)
	require.Equal(t, Admitted, one.Take(p, now, 1, 0).Verdict)
	s, known := p.home.state.Load(), sleeper.Known()
	require.Equal(t, known.live, s.Tag())
	require.True(t, known.idle(s, one.Watermark()))
	assert.Nil(t, sleeper.homeCandidate(p).slot)
	require.NotZero(t, known.bucketDebt(s, start))
	passed, _ := sleeper.skipIndebted(one.Find(8), known, start)
	assert.Zero(t, passed)
}

// TestAPlanOfLongAgoDecidesNothing (I1): after two replacements, no call that finds a record at once (Hit, HitQuota,
// HitCharge) decides by the old plan. The current plan has the same tag as the old plan, and half of its limit.
func TestAPlanOfLongAgoDecidesNothing(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 8)), Refuse)
	cfg.Plan.SetSource(made{kinds[0], bucketNumbers(8)})
	memory := sharedMemory(t, cfg)
	one, sleeper := mapped(t, cfg, memory, ownerOf{1, []uint64{2}}), mapped(t, cfg, memory, ownerOf{2, []uint64{1}})
	p, known := one.Find(7), sleeper.Known()
	quota := known.NewQuota(known.Quota(0))
	for range 2 {
		require.True(t, one.Replace(bucketNumbers(4), clockAt(start)))
	}
	require.Equal(t, Admitted, one.Take(p, start, 1, 0).Verdict)
	require.Equal(t, known.live, p.home.state.Load().Tag())
	for name, hit := range map[string]func(n uint64) (atomicbucket.State, *Plan, Verdict){
		"take":               func(n uint64) (atomicbucket.State, *Plan, Verdict) { return sleeper.Hit(p, start, n, 0) },
		"take under a quota": func(n uint64) (atomicbucket.State, *Plan, Verdict) { return sleeper.HitQuota(p, start, n, quota) },
		"charge":             func(n uint64) (atomicbucket.State, *Plan, Verdict) { return sleeper.HitCharge(p, start, n, quota) },
	} {
		for _, n := range []uint64{7, 8} { // the old plan would admit 7, and refuse 8 unless they are a charge
			_, _, v := hit(n)
			assert.Equal(t, Undecided, v, "%s, %d tokens", name, n)
		}
	}
	assert.Same(t, known, sleeper.Known())
}

// TestReplaceBesideAnother: while a live process is about to write the numbers of a plan, no other process can write
// them. If a replacement has been announced, the next replacement, or a sweep, completes it.
func TestReplaceBesideAnother(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, []uint64{2}})
	for _, c := range []struct {
		setter   uint64
		replaces bool
	}{{2, false}, {3, true}, {1, true}, {0, true}} {
		table.setting.Store(c.setter)
		n := table.Plan().planned
		assert.Equal(t, c.replaces, table.Replace(bucketNumbers(7), clockAt(start)), "%+v", c)
		if c.replaces {
			assert.Equal(t, n+1, table.Plan().planned)
			assert.Zero(t, table.setting.Load())
		}
	}
	table.setting.Store(0)
	for _, complete := range []func(){func() { table.Sweep(start, nil) }, func() { table.Replace(bucketNumbers(9), clockAt(start)) }} {
		require.Equal(t, Admitted, table.Take(table.Find(7), start, 1, 0).Verdict)
		n := table.Plan().planned
		table.areas.write(n+1, bucketNumbers(9))
		table.change.Store((n+1)<<changeShift | changing) // and the process is dead
		complete()
		assert.GreaterOrEqual(t, table.Plan().planned, n+1)
		assert.EqualValues(t, 9, table.Plan().Quota(0).Tokens)
		assert.Equal(t, table.planned.Load()<<changeShift, table.change.Load())
		assert.Equal(t, table.Plan().live, table.Find(7).slot(0).state.Load().Tag(), "records follow it")
	}
}

// TestPlanWordsInMemory checks the places and values of the words of a table's plan. Both are part of the layout of
// files, so a change of either needs a new version of the layout.
func TestPlanWordsInMemory(t *testing.T) {
	const planned, change, setting, area0, area1 = 8, 80, 88, 4096, 4096 + 1024
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 8)), Refuse)
	cfg.Plan.SetSource(made{kinds[0], bucketNumbers(8)})
	memory := sharedMemory(t, cfg)
	says := func(at int) uint64 { return binary.NativeEndian.Uint64(memory[at:]) }
	numbersAt := func(area int) (numbers []uint64) {
		for i := range says(area) {
			numbers = append(numbers, says(area+8+int(i)*8))
		}
		return numbers
	}
	table := mapped(t, cfg, memory, ownerOf{1, nil})
	require.Equal(t, Admitted, table.Take(table.Find(7), start, 1, 0).Verdict)
	for i, want := range []struct {
		change       uint64
		area0, area1 []uint64
		live         atomicbucket.Tag
	}{
		{2, nil, bucketNumbers(8), atomicbucket.Live},
		{4, bucketNumbers(9), bucketNumbers(8), atomicbucket.Second},
		{6, bucketNumbers(9), bucketNumbers(10), atomicbucket.Live},
		{8, bucketNumbers(11), bucketNumbers(10), atomicbucket.Second},
	} {
		if i > 0 {
			require.True(t, table.Replace(bucketNumbers(8+uint64(i)), clockAt(start)))
		}
		assert.EqualValues(t, start+int64(i), says(0), "the watermark, which each replacement moves by a nanosecond")
		assert.EqualValues(t, 1+i, says(planned))
		assert.Equal(t, want.change, says(change))
		assert.Zero(t, says(setting))
		assert.Equal(t, want.area0, numbersAt(area0))
		assert.Equal(t, want.area1, numbersAt(area1))
		assert.Equal(t, want.live, table.Find(7).home.state.Load().Tag())
	}
	many := make([]uint64, MaxNumbers)
	for i := range many {
		many[i] = uint64(i) + 1
	}
	clear(memory)
	require.NoError(t, cfg.Begin(memory, many))
	assert.Equal(t, many, numbersAt(area1))
	numbers, err := cfg.Numbers(memory)
	require.NoError(t, err)
	assert.Equal(t, many, numbers)
}

// TestEachProcessFollowsTheSamePlan: a plan has the same tag and the same previous plan, whichever process builds it,
// and however many replacements that process has missed. Quotas of the process stay valid exactly if ticks stay the
// same.
func TestEachProcessFollowsTheSamePlan(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 8)), Refuse)
	memory := sharedMemory(t, cfg)
	one, sleeper := mapped(t, cfg, memory, ownerOf{1, []uint64{2}}), mapped(t, cfg, memory, ownerOf{2, []uint64{1}})
	before := one.Plan()
	for i, want := range []struct {
		numbers []uint64
		same    bool // ticks
		live    atomicbucket.Tag
	}{
		{bucketNumbers(6), true, atomicbucket.Second},
		{[]uint64{16, 17, 8}, false, atomicbucket.Live},
		{[]uint64{16, 17, 9}, true, atomicbucket.Second},
		{bucketNumbers(5), false, atomicbucket.Live},
	} {
		require.True(t, one.Replace(want.numbers, clockAt(start)))
		plan := one.Plan()
		for _, p := range []*Plan{plan, sleeper.Plan()} {
			assert.EqualValues(t, i+2, p.planned)
			assert.EqualValues(t, i+2, p.number)
			assert.Equal(t, want.live, p.live)
			require.NotNil(t, p.from)
			assert.Equal(t, before.algorithm, p.from)
			if i%2 == 0 {
				break // the other process follows no replacement
			}
		}
		assert.Equal(t, want.same, plan.unit == before.unit)
		before = plan
	}
}

// TestNumbersThatStandForNoPlan (R20): a call that can build no plan of the table's algorithm from the numbers
// continues with the plan that it knew. If it can build neither the current nor the previous plan, a record that does
// not follow the current plan is freed.
func TestNumbersThatStandForNoPlan(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	for name, build := range map[string]func(numbers []uint64) (*Plan, error){
		"no plan":           func([]uint64) (*Plan, error) { return nil, errors.New("no plan") },
		"another algorithm": kinds[2].build,
	} {
		t.Run(name, func(t *testing.T) {
			table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
			require.True(t, table.Replace(bucketNumbers(6), clockAt(start)))
			require.Equal(t, Admitted, table.Take(table.Find(7), start, 1, 0).Verdict)
			known := table.Known()
			require.NotNil(t, known.from)
			table.build = build
			table.planned.Store(3) // no process has announced plan 3
			plan := table.Plan()
			assert.EqualValues(t, 3, plan.planned)
			assert.Equal(t, known.algorithm, plan.algorithm)
			assert.Nil(t, plan.from)
			table.Complete(clockAt(start))
			assert.Zero(t, records(table, 7))
		})
	}
}

// TestTheWatermarkMovesByThePlanInMemory (R7, R22): when all records follow the plan in memory, the watermark moves by
// that plan's skew and circle, not by those of the plan with which the process has mapped the table.
func TestTheWatermarkMovesByThePlanInMemory(t *testing.T) {
	fine, err := atomicbucket.NewTokenBucket(16, 17, 8)
	require.NoError(t, err)
	cfg := sharedConfig(planOf(t, fine), Refuse)
	cfg.Plan.SetSource(made{kinds[0], []uint64{16, 17, 8}})
	table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
	coarse := planOf(t, perSecond(t, 1, 8))
	require.NotEqual(t, cfg.Plan.skew, coarse.skew)
	skew, alone := table.movePace(start)
	assert.Equal(t, cfg.Plan.skew, skew)
	assert.True(t, alone)
	table.areas.write(2, bucketNumbers(8))
	table.change.Store(2<<changeShift | changing) // and the process is dead
	skew, alone = table.movePace(start)
	assert.Equal(t, coarse.skew, skew)
	assert.True(t, alone)
	assert.EqualValues(t, 2<<changeShift, table.change.Load())
}

// TestPlanWordsThatNobodyWrote (R20): whatever values the words for the replacement of the plan have, calls continue
// with some plan, and the next replacement corrects these words.
func TestPlanWordsThatNobodyWrote(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	for _, value := range []uint64{0, 1, 2, 3, 4, 5, 1 << 32, 1 << 62, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
		for name, at := range map[string]func(tb *Table) *word.Word{
			"planned": func(tb *Table) *word.Word { return &tb.planned },
			"change":  func(tb *Table) *word.Word { return &tb.change },
			"setting": func(tb *Table) *word.Word { return &tb.setting },
			"count":   func(tb *Table) *word.Word { return &tb.areas[1][0] },
			"period":  func(tb *Table) *word.Word { return &tb.areas[1][2] },
			"burst":   func(tb *Table) *word.Word { return &tb.areas[1][3] },
		} {
			t.Run(fmt.Sprintf("%s %#x", name, value), func(t *testing.T) {
				memory := sharedMemory(t, cfg)
				table := mapped(t, cfg, memory, ownerOf{1, nil})
				at(table).Store(value)
				other := mapped(t, cfg, memory, ownerOf{2, nil})
				p := table.Find(7)
				for i := range int64(3) {
					table.Take(p, start+i, 1, 0)
					other.Take(p, start+i, 1, 0)
					other.Sweep(start+i*second, nil)
				}
				require.True(t, table.Replace(bucketNumbers(6), clockAt(start+3*second)))
				assert.EqualValues(t, 6, other.Plan().Quota(0).Tokens)
				table.Reset(p)
				assert.Equal(t, Admitted, table.Take(p, start+4*second, 6, 0).Verdict)
				assert.Equal(t, Refused, other.Take(p, start+4*second, 1, 0).Verdict)
			})
		}
	}
}
