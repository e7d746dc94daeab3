//go:build !explore

package shard

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weir-go/weir/atomicbucket"
)

// TestSurvey checks the counts of a survey, with claims of dead processes and with debts at a time that may be many
// turns of the payload's circle later.
func TestSurvey(t *testing.T) {
	for _, plan := range plansToShare(t) {
		cfg := sharedConfig(plan, Refuse)
		cfg.Slots = 2000
		table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, []uint64{2}})
		assert.Equal(t, table.Occupancy(), table.Survey(start).Occupancy)
		p := table.Find(7)
		for i, claimant := range []uint64{1, 2, 3, 4} {
			table.markPage(p.slot(uint64(i)))
			_, ok := p.slot(uint64(i)).state.Claim(0, claimant)
			require.True(t, ok)
		}
		for key := range uint64(20) {
			require.Equal(t, Admitted, table.Take(table.Find(1<<58+key<<59), start, 1, 0).Verdict)
		}
		s := table.Survey(start)
		assert.Equal(t, table.Occupancy(), s.Occupancy)
		assert.Equal(t, table.Stats(), s.Stats)
		assert.EqualValues(t, 4, s.Claimed)
		assert.EqualValues(t, 2, s.Deserted)
		assert.EqualValues(t, 20, s.Live)
		assert.EqualValues(t, 20, s.Indebted)
		assert.EqualValues(t, start, s.Watermark)
		assert.EqualValues(t, start, s.Swept)
		assert.Equal(t, s, table.Survey(start-second), "a late clock")
		for turn := range int64(64) {
			later := start + int64(plan.skew)*(5+turn)
			if later < start {
				break // times end in April 2262
			}
			inFlight := uint64(0) // a survey counts tokens in flight that a sweep would forget by their entries
			if plan.InFlight() {
				inFlight = 20
			}
			assert.Equal(t, inFlight, table.Survey(later).Indebted, "%v after %v", plan.algorithm, time.Duration(later-start))
		}
		assert.EqualValues(t, start, table.Watermark(), "looking moves nothing")
	}
}

// TestSurveyOfAnyWords: whatever values the words of the memory have, a survey can read them, and does not write.
func TestSurveyOfAnyWords(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, plan := range plansToShare(t) {
		cfg := sharedConfig(plan, Refuse)
		memory := sharedMemory(t, cfg)
		table := mapped(t, cfg, memory, ownerOf{1, nil})
		for range 200 {
			require.NoError(t, unix.Mprotect(memory, unix.PROT_READ|unix.PROT_WRITE))
			for range 100 {
				scribble(memory, random.Uint64(), random.Uint64())
			}
			at := uint64(uintptr(unsafe.Pointer(table.first))-uintptr(unsafe.Pointer(table.common))) / 8
			for i := range uint64(48) {
				tag := atomicbucket.Tag(random.UintN(8))
				scribble(memory, at+2*i, uint64(atomicbucket.NewState(tag, random.Uint64(), random.Uint64())))
			}
			require.NoError(t, unix.Mprotect(memory, unix.PROT_READ))
			for _, now := range []int64{math.MinInt64, -1, 0, start, math.MaxInt64, random.Int64()} {
				s := table.Survey(now)
				assert.Equal(t, table.slots, s.NeverUsed+s.Free+s.Claimed+s.Tentative+s.Live)
				assert.LessOrEqual(t, s.Deserted, s.Claimed)
				assert.LessOrEqual(t, s.Indebted, s.Live)
			}
		}
	}
}

// TestReadTime: readTime returns the given time or the watermark, whichever is later, but at most four skews after the
// watermark. If no call can have written the watermark, readTime returns the watermark.
func TestReadTime(t *testing.T) {
	table := newTable(t, 1, 1, nil)
	step := leapStep * int64(table.Plan().skew)
	for _, c := range []struct{ mark, now, want int64 }{
		{start, start - 1, start},
		{start, start + 1, start + 1},
		{start, start + step, start + step},
		{start, start + step + 1, start + step},
		{0, 1, 1},
		{-1, start, -1},
		{math.MaxInt64 - step, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64 - step + 1, math.MaxInt64, math.MaxInt64 - step + 1},
	} {
		table.watermark.Store(uint64(c.mark))
		assert.Equal(t, c.want, table.readTime(c.now), "%+v", c)
	}
}

// TestSurveyOfWhatIsNoDebt: a claim whose number looks like a debt does not count as indebted. Nor does an idle record
// so old that it would look indebted four skews after the watermark.
func TestSurveyOfWhatIsNoDebt(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	skew := int64(cfg.Plan.skew)
	claimant := uint64(start+12*skew+second) % (1 << 54)
	table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, []uint64{claimant}})
	require.Equal(t, Admitted, take(table, 7, start, 1))
	_, ok := table.Find(7).slot(1).state.Claim(0, claimant)
	require.True(t, ok)
	table.watermark.Store(uint64(start + 12*skew))
	for _, now := range []int64{start + 12*skew, start + 16*skew} {
		s := table.Survey(now)
		assert.EqualValues(t, 1, s.Live)
		assert.EqualValues(t, 1, s.Claimed)
		assert.Zero(t, s.Indebted)
	}
}
