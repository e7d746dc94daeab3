package shard

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func inRAM(t *testing.T, m *memory) (pages int) {
	region := m.region()
	present := make([]byte, ceilDiv(uint64(len(region)), uint64(os.Getpagesize())))
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&region[0])), uintptr(len(region)),
		uintptr(unsafe.Pointer(&present[0])))
	require.Zero(t, errno)
	for _, p := range present {
		pages += int(p & 1)
	}
	return pages
}

// advice returns the huge page flag of a memory's mapping: "hg" for wanted, "nh" for unwanted.
func advice(t *testing.T, m *memory) string {
	smaps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	at, inside := uintptr(unsafe.Pointer(&m.slots[0])), false
	for line := range strings.Lines(string(smaps)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from <= at && at < to
		} else if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			for _, flag := range strings.Fields(flags) {
				if flag == "hg" || flag == "nh" {
					return flag
				}
			}
		}
	}
	return ""
}

// TestTouchedMemory: a few keys in a large table touch a few pages, regardless of sweeps and changes of the plan.
func TestTouchedMemory(t *testing.T) {
	table := newTable(t, 1_666_667, 0, func(c *Config) { c.Shards = 8 })
	assert.Zero(t, inRAM(t, table.memory), "New touches nothing")
	const keys = 10
	key := uint64(0)
	for range keys {
		key += 0x9e37_79b9_7f4a_7c15
		require.Equal(t, Admitted, take(table, key, start, 1))
	}
	require.True(t, table.Sweep(start, nil))
	table.Adopt(planOf(t, perSecond(t, 1, 7)), clockAt(start))
	require.True(t, table.SweepEpoch(start+100*second, nil))
	assert.EqualValues(t, keys, table.memory.count.Load())
	// A search may also read the first slots of the next page.
	assert.LessOrEqual(t, inRAM(t, table.memory), 2*keys)
}

// TestCollapse: Collapse asks for huge pages when half of the pages are in use, unless the system has them turned off.
// The system decides how many it provides.
func TestCollapse(t *testing.T) {
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		t.Skip("this kernel has no huge pages")
	}
	table := newTable(t, mapThreshold/slotBytes, 0, nil)
	require.Equal(t, Admitted, take(table, 1, start, 5))
	assert.Equal(t, "nh", advice(t, table.memory))
	table.Collapse(nil)
	assert.Equal(t, "nh", advice(t, table.memory), "a single page is in use")

	for slot := uint64(0); table.memory.count.Load() < table.memory.dense; slot += pageSlots {
		table.memory.mark(slot)
	}
	rests := 0
	table.Collapse(func() bool { rests++; return false })
	if bytes.Contains(mode, []byte("[never]")) {
		assert.Equal(t, "nh", advice(t, table.memory))
		return
	}
	assert.Equal(t, "hg", advice(t, table.memory))
	assert.LessOrEqual(t, rests, 1, "told to stop")
	if other := newTable(t, mapThreshold/slotBytes, 0, nil); unix.Madvise(other.memory.region()[:hugePage], unix.MADV_COLLAPSE) == nil {
		assert.Equal(t, 1, rests, "the system can make huge pages now")
		rests = 0
		table.Collapse(func() bool { rests++; return true })
		assert.Equal(t, len(table.memory.region())/hugePage, rests)
	}
	table.Collapse(nil)
	assert.Equal(t, Refused, take(table, 1, start, 1), "the record is what it was")

	whole := newTable(t, mapThreshold/slotBytes, 0, func(c *Config) { c.Prefault = true })
	assert.Equal(t, "hg", advice(t, whole.memory))
	assert.EqualValues(t, ceilDiv(whole.slots, pageSlots), inRAM(t, whole.memory))
	assert.Zero(t, whole.memory.dense, "nothing is left to be done")
	whole.Collapse(func() bool { t.Error("and nothing is done"); return true })
}

// TestWhatIsCollapsed: collapse makes huge pages one after another, until rest returns false or the system turns out
// not to have the system call. It leaves out a huge page that the system cannot make now.
func TestWhatIsCollapsed(t *testing.T) {
	for _, c := range []struct {
		name            string
		advised, made   error // what the system returns for the advice, and for the call that makes a huge page
		goOn            bool
		collapsed, rest int
	}{
		{"all", nil, nil, true, 2, 2},
		{"none, as it takes no advice", unix.EINVAL, nil, true, 0, 0},
		{"none, as it has no such call", nil, unix.EINVAL, true, 1, 0},
		{"none, as it has no memory for them", nil, unix.ENOMEM, true, 2, 2},
		{"until stopped", nil, nil, false, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{2 * hugePage, 5 * hugePage / 2} {
				region := make([]byte, size)
				advised, collapsed, rests := 0, 0, 0
				advise := func(part []byte, advice int) error {
					if advice == unix.MADV_HUGEPAGE {
						assert.Len(t, part, len(region))
						advised++
						return c.advised
					}
					assert.Equal(t, unix.MADV_COLLAPSE, advice)
					assert.Len(t, part, hugePage)
					assert.Same(t, &region[collapsed*hugePage], &part[0])
					collapsed++
					return c.made
				}
				collapse(region, advise, func() bool { rests++; return c.goOn })
				assert.Equal(t, []int{1, c.collapsed, c.rest}, []int{advised, collapsed, rests})
				if c.goOn {
					collapsed = 0
					collapse(region, advise, nil)
					assert.Equal(t, c.collapsed, collapsed, "without a rest")
				}
			}
		})
	}
}

// TestTheSizeOfAHugePage compares the constant hugePage with the size that the system reports.
func TestTheSizeOfAHugePage(t *testing.T) {
	size, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
	if err != nil {
		t.Skip("this kernel has no huge pages")
	}
	assert.Equal(t, strconv.Itoa(hugePage), strings.TrimSpace(string(size)))
}

func TestMapSlots(t *testing.T) {
	m, err := mapSlots(mapThreshold/slotBytes, true)
	require.NoError(t, err)
	touch(m.slots)
	assert.Zero(t, uintptr(unsafe.Pointer(&m.slots[0]))%hugePage)
	last := &m.slots[len(m.slots)-1]
	last.key.Store(7)
	assert.EqualValues(t, 7, last.key.Load())

	_, err = mapSlots(math.MaxInt/slotBytes, true)
	assert.ErrorContains(t, err, "shard: map ")
}

// TestMappedMemoryGoesBack: mapped memory is returned to the system when nothing refers to it any longer.
func TestMappedMemoryGoesBack(t *testing.T) {
	m, err := mapSlots(mapThreshold/slotBytes, false)
	require.NoError(t, err)
	at, size := uintptr(unsafe.Pointer(&m.slots[0])), uintptr(mapThreshold)
	mapped := func() bool {
		present := make([]byte, size/uintptr(os.Getpagesize()))
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, at, size, uintptr(unsafe.Pointer(&present[0])))
		return errno != unix.ENOMEM
	}
	require.True(t, mapped())
	runtime.KeepAlive(m)
	require.Eventually(t, func() bool {
		runtime.GC()
		return !mapped()
	}, time.Minute, time.Millisecond)
}
