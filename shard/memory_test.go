package shard

import (
	"math"
	"math/bits"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

func logOf(t *testing.T, limit uint64) *Plan {
	log, err := atomicbucket.NewSlidingLog(limit, limit, 60*1e9)
	require.NoError(t, err)
	plan, err := NewPlan(&log, 0)
	require.NoError(t, err)
	return plan
}

// TestHowATableLiesInMemory: a table has enough homes for its slots, and the probe window of the last home of each
// shard is complete.
func TestHowATableLiesInMemory(t *testing.T) {
	bucket := planOf(t, perSecond(t, 1, 5))
	for _, c := range []struct {
		slots                   uint64
		shards, window          int
		limit                   uint64 // the limit of a log; 0 means a token bucket
		homes, perShard         uint64
		ringSize, ringWords     uint64
		all, ringSlots, bounded uint64
		near                    uint64 // neighbourhoods
	}{
		{1, 1, 1, 0, 1, 4, 0, 0, 4, 0, 1, 1},
		{1, 1, 0, 0, 1, 32, 0, 0, 32, 0, 1, 1},
		{5, 1, 4, 0, 2, 8, 0, 0, 8, 0, 1, 1},
		{5, 1, 5, 0, 2, 12, 0, 0, 12, 0, 1, 1},
		{4, 1, 5, 0, 1, 8, 0, 0, 8, 0, 1, 1},
		{4096, 4, 32, 0, 256, 1052, 0, 0, 4208, 0, 66, 17},
		{4, 1, 4, 1, 1, 4, 1, 2, 4, 4, 1, 1},
		{4, 1, 4, 2, 1, 4, 2, 2, 4, 4, 1, 1},
		{4, 2, 4, 5, 1, 4, 5, 6, 8, 24, 1, 1},
		{68, 1, 4, 0, 17, 68, 0, 0, 68, 0, 2, 1},
	} {
		plan := bucket
		if c.limit > 0 {
			plan = logOf(t, c.limit)
		}
		cfg := Config{Plan: plan, Slots: c.slots, Shards: c.shards, ProbeWindow: c.window, Start: start}
		l, err := cfg.layout()
		require.NoError(t, err)
		window := uint64(c.window)
		if window == 0 {
			window = DefaultProbeWindow
		}
		assert.Equal(t, layout{uint64(c.shards), c.homes, c.perShard, window, c.ringSize, c.ringWords, 0}, l, "%+v", c)
		assert.Equal(t, []uint64{c.all, c.ringSlots, c.bounded}, []uint64{l.slots(), l.ringSlots(), l.boundWords()}, "%+v", c)

		bytes, err := cfg.Bytes()
		require.NoError(t, err)
		want := uint64(unsafe.Sizeof(Table{})+unsafe.Sizeof(common{})) + uint64(c.shards)*shardBytes + c.bounded*8 + (c.all+spareSlots)*16 + markWords(c.all)*8 + c.near*16
		if c.limit > 0 {
			want += (c.ringSlots+spareSlots)*16 + markWords(c.ringSlots)*8
		}
		assert.Equal(t, want, bytes, "%+v", c)
		table, err := New(cfg)
		require.NoError(t, err)
		assert.Equal(t, Stats{Slots: c.all, Shards: c.shards, Bytes: want}, table.Stats(), "%+v", c)
	}
}

// TestTheLargestTable: exactly the tables that exceed the address space are refused.
func TestTheLargestTable(t *testing.T) {
	const most = uint64(math.MaxInt / 2 / 16)
	bucket := planOf(t, perSecond(t, 1, 5))
	for _, c := range []struct {
		Config
		ok bool
	}{
		{Config{Plan: bucket, Slots: most/4*4 - 28, Shards: 1}, true},
		{Config{Plan: bucket, Slots: most/4*4 - 27, Shards: 1}, false},
		{Config{Plan: bucket, Slots: most, Shards: 1, ProbeWindow: 1}, false}, // rounded up to lines: too many
		{Config{Plan: bucket, Slots: most + 1, Shards: 1, ProbeWindow: 1}, false},
		{Config{Plan: bucket, Slots: 1, Shards: 1, ProbeWindow: int(most / 4 * 4)}, true},
		{Config{Plan: bucket, Slots: 1, Shards: 1, ProbeWindow: int(most + 1)}, false},
		{Config{Plan: bucket, Slots: 1, Shards: MaxShards, ProbeWindow: int(most/4096/4*4) + 4}, false},
		{Config{Plan: bucket, Slots: 1, Shards: MaxShards, ProbeWindow: 4}, true},
		{Config{Plan: bucket, Slots: 1, Shards: 1, Overflow: Admit}, true},
		{Config{Plan: bucket, Slots: 1, Shards: 1, Overflow: Admit + 1}, false},
		{Config{Plan: bucket, Slots: 1, Shards: 1, Start: 0}, true},
		{Config{Plan: bucket, Slots: 1, Shards: 6}, false},
		{Config{Plan: logOf(t, 4096), Slots: most / 2048 / 4 * 4, Shards: 1, ProbeWindow: 4}, true},
		{Config{Plan: logOf(t, 4096), Slots: most/2048/4*4 + 4, Shards: 1, ProbeWindow: 4}, false},
		{Config{Plan: logOf(t, 4096), Slots: most / 2, Shards: 1, ProbeWindow: 4}, false},
	} {
		bytes, err := c.Bytes()
		assert.Equal(t, err == nil, bytes > 0)
		assert.Equal(t, c.ok, err == nil, "%d slots, %d shards, window %d: %v", c.Slots, c.Shards, c.ProbeWindow, err)
	}
}

// TestAProbeWindowThatNoTableHolds: if a probe window is too long for any table, the error names the probe window.
func TestAProbeWindowThatNoTableHolds(t *testing.T) {
	bucket := planOf(t, perSecond(t, 1, 5))
	_, err := Config{Plan: bucket, Slots: 1, Shards: 1, ProbeWindow: math.MaxInt}.Bytes()
	assert.ErrorContains(t, err, "with probe windows of")
	_, err = Config{Plan: bucket, Slots: 1, Shards: 256, ProbeWindow: math.MaxInt/128 + 1}.Bytes()
	assert.ErrorContains(t, err, "want at most", "so many slots in all that their number is none of 64 bits")
}

// TestSmallTablesLieOnTheHeap: tables of less than 4 MiB are on the Go heap. Larger tables have their own memory, if
// the system supports it.
func TestSmallTablesLieOnTheHeap(t *testing.T) {
	const fourMiB = 4 << 20 / 16
	small, err := allocate(fourMiB-1, false)
	require.NoError(t, err)
	assert.Zero(t, small.mapped)
	assert.EqualValues(t, (fourMiB-1+spareSlots)*16, small.heap)
	assert.Equal(t, small.heap+markWords(fourMiB-1)*8, allocated(fourMiB-1), "with a mark for each page")
	assert.Len(t, small.slots, fourMiB-1)
	assert.Equal(t, fourMiB-1, cap(small.slots))
	large, err := allocate(fourMiB, false)
	require.NoError(t, err)
	assert.Len(t, large.slots, fourMiB)
	assert.Equal(t, allocated(fourMiB), large.mapped+large.heap+markWords(fourMiB)*8)
	if mappedBytes(fourMiB) > 0 {
		assert.EqualValues(t, fourMiB*16, large.mapped)
		assert.EqualValues(t, fourMiB*16+uint64(os.Getpagesize()), mappedBytes(fourMiB+1), "whole pages")
		assert.Zero(t, large.heap)
		assert.Zero(t, uintptr(unsafe.Pointer(&large.slots[0]))%(2<<20), "a huge page")
	}
	runtime.KeepAlive(large)
}

// TestNoMemoryThatTheMachineHasNot: a table larger than the machine's memory is refused before any memory is touched.
func TestNoMemoryThatTheMachineHasNot(t *testing.T) {
	have := physicalMemory()
	assert.Greater(t, have, uint64(64<<20))
	if have > maxBytes {
		t.Skip("the machine has more memory than a 32-bit program can name")
	}
	_, err := allocate(have/16+1, false)
	assert.ErrorContains(t, err, "this machine has")
	_, err = New(Config{Plan: logOf(t, 4096), Slots: have/(4096*8) + 100, Shards: 1})
	assert.ErrorContains(t, err, "slots with 4096 times each: ")
	_, err = New(Config{Plan: logOf(t, 1), Slots: have/16 + 1, Shards: 1})
	assert.ErrorContains(t, err, "this machine has")
	if _, err := mapSlots(mapThreshold/slotBytes, true); mappedBytes(1) > 0 && err == nil {
		_, err = mapSlots(1<<60, true)
		assert.ErrorContains(t, err, "want at most", "their bytes are none of 64 bits")
		_, err = mapSlots(1<<58-1, true)
		assert.ErrorContains(t, err, "want at most", "in whole pages it is more")
		_, err = mapSlots(1<<48, true)
		assert.ErrorContains(t, err, "shard: map 4503599627370496 bytes for 281474976710656 slots: ", "more than an address space")
	}
}

// TestPrefaultLeavesEverySlotUnused: touching every page writes nothing that a search could see.
func TestPrefaultLeavesEverySlotUnused(t *testing.T) {
	for _, slots := range []int{100, mapThreshold / slotBytes} {
		table := newTable(t, slots, 0, func(c *Config) { c.Prefault = true })
		for i := range table.shards[0].slots {
			sl := &table.shards[0].slots[i]
			require.Zero(t, sl.state.Load())
			require.Zero(t, sl.key.Load())
		}
		for i := range table.words {
			require.Zero(t, table.words[i].Load())
		}
	}
}

// TestTheRingsOfAllSlotsAreApart: the rings of two slots have no word in common.
func TestTheRingsOfAllSlotsAreApart(t *testing.T) {
	table := newTable(t, 9, 4, func(c *Config) { c.Plan, c.Shards = logOf(t, 5), 2 })
	number := uint64(0)
	for pass := range 2 {
		number = 0
		for i := range table.shards {
			for j := range table.shards[i].slots {
				ring := table.ring(&table.shards[i].slots[j])
				require.Len(t, ring, 5)
				for k := range ring {
					number++
					if pass == 0 {
						require.Zero(t, ring[k].Load())
						ring[k].Store(number)
					}
					require.Equal(t, number, ring[k].Load())
				}
			}
		}
	}
	rings := unsafe.Slice((*uint64)(unsafe.Pointer(&table.rings.slots[0])), 2*len(table.rings.slots))
	assert.Equal(t, number, rings[len(rings)-2], "the last word of an odd number is unused, and nothing is beyond")
}

// TestNewRefuses: New refuses sizes that no machine has, and too many shards.
func TestNewRefuses(t *testing.T) {
	c := Config{Plan: planOf(t, perSecond(t, 1, 5)), Slots: 1 << 44, Shards: 1, Start: start}
	_, err := New(c)
	assert.ErrorContains(t, err, map[int]string{32: "want at most 67108863 slots", 64: "bytes are needed"}[bits.UintSize])
	c.Slots, c.Shards = 1, 8192
	_, err = New(c)
	assert.ErrorContains(t, err, "a power of two up to 4096 shards")
	c.Shards = 4096
	_, err = New(c)
	assert.NoError(t, err)
}
