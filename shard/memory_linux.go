package shard

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page on amd64 and arm64 with 4 KiB pages.
const hugePage = 2 << 20

func physicalMemory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return maxBytes
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}

// mapSlots maps n zeroed slots, aligned to a huge page. If huge is false, the slots stay in small pages until collapse
// moves them. A kernel without huge pages provides small pages, which are slower but equally correct.
func mapSlots(n uint64, huge bool) (*memory, error) {
	size := mappedBytes(n)
	if n > maxBytes/slotBytes || size > maxBytes {
		return nil, fmt.Errorf("shard: map %d slots: want at most %d", n, uint64(maxBytes/slotBytes))
	}
	// Map one huge page more than is needed, then unmap the parts around the aligned slots.
	region, err := unix.MmapPtr(-1, 0, nil, uintptr(size+hugePage), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("shard: map %d bytes for %d slots: %w", size, n, err)
	}
	skip := -uintptr(region) % hugePage
	first := unsafe.Add(region, skip)
	m := &memory{slots: unsafe.Slice((*slot)(first), n), mapped: size, pages: newPages(n)}
	runtime.AddCleanup(m, func(first unsafe.Pointer) { unmap(first, uintptr(size)) }, first)
	if head, tail := unmap(region, skip), unmap(unsafe.Add(first, size), hugePage-skip); !head || !tail {
		m.mapped += hugePage // the system kept some of it
	}
	advice := unix.MADV_HUGEPAGE
	if !huge { // even if the system uses huge pages by default: the first key would take a whole huge page
		advice, m.dense = unix.MADV_NOHUGEPAGE, ceilDiv(ceilDiv(n, pageSlots), 2)
	}
	_ = unix.Madvise(m.region(), advice)
	return m, nil
}

func (m *memory) region() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&m.slots[0])), mappedBytes(uint64(len(m.slots))))
}

// collapse asks for huge pages. Linux since version 6.1 makes them during the call, and earlier versions make them
// later (khugepaged). If the system has turned huge pages off, they stay off.
func (m *memory) collapse(pause func() bool) {
	defer runtime.KeepAlive(m)
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || bytes.Contains(mode, []byte("[never]")) {
		return
	}
	collapse(m.region(), unix.Madvise, pause)
}

// collapse does the work of [memory.collapse]. advise is the system call madvise.
func collapse(region []byte, advise func(region []byte, advice int) error, pause func() bool) {
	if advise(region, unix.MADV_HUGEPAGE) != nil {
		return
	}
	for ; len(region) >= hugePage; region = region[hugePage:] {
		err := advise(region[:hugePage], unix.MADV_COLLAPSE)
		if err == unix.EINVAL || pause != nil && !pause() {
			return
		}
	}
}

// mappedBytes returns how many bytes mapSlots maps for n slots: whole pages.
func mappedBytes(n uint64) uint64 {
	page := uint64(os.Getpagesize())
	return ceilDiv(n*slotBytes, page) * page
}

// unmap gives memory back and reports whether the system took it.
func unmap(first unsafe.Pointer, size uintptr) bool {
	return size == 0 || unix.MunmapPtr(first, size) == nil
}
