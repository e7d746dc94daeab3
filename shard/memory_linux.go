package shard

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page on amd64 and arm64 with 4 KiB pages.
const hugePage = 2 << 20

// physicalMemory returns the bytes of memory of this machine.
func physicalMemory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return maxBytes
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}

// mapSlots maps n zeroed slots, aligned to a huge page, and asks for huge pages.
// A kernel without them serves ordinary pages: slower, and just as right.
func mapSlots(n uint64) (*memory, error) {
	size := n*slotBytes + hugePage
	region, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("shard: map %d bytes for %d slots: %w", size, n, err)
	}
	skip := -uintptr(unsafe.Pointer(&region[0])) % hugePage
	_ = unix.Madvise(region[skip:], unix.MADV_HUGEPAGE)
	m := &memory{
		slots:  unsafe.Slice((*slot)(unsafe.Pointer(&region[skip])), n),
		mapped: size,
	}
	runtime.AddCleanup(m, func(region []byte) { _ = unix.Munmap(region) }, region)
	return m, nil
}
