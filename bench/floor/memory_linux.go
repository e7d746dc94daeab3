package floor

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// Map returns zeroed memory outside the heap, with all its pages present. If the flag huge is set, the memory is in
// huge pages, as long as the kernel has some left. The function [Huge] returns how much of the memory is in huge pages.
func Map(size uint64, huge bool) (memory []byte, release func(), err error) {
	region, err := unix.Mmap(-1, 0, int(size+hugePage), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	release = func() { _ = unix.Munmap(region) }
	skip := -uintptr(unsafe.Pointer(&region[0])) % hugePage
	memory = region[skip : skip+uintptr(size)]
	advice := unix.MADV_NOHUGEPAGE
	if huge {
		advice = unix.MADV_HUGEPAGE
	}
	_ = unix.Madvise(region[skip:], advice) // a kernel without huge pages refuses this; Huge then returns 0
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 0
	}
	return memory, release, nil
}

// Huge returns how many bytes of the memory are in huge pages, by the kernel's report.
func Huge(memory []byte) (uint64, error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	at := uint64(uintptr(unsafe.Pointer(&memory[0])))
	inside, total := false, uint64(0)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		head, rest, _ := strings.Cut(line, " ")
		if from, to, ok := strings.Cut(head, "-"); ok && !strings.HasSuffix(head, ":") {
			low, _ := strconv.ParseUint(from, 16, 64)
			high, _ := strconv.ParseUint(to, 16, 64)
			inside = low < at+uint64(len(memory)) && at < high
		} else if inside && head == "AnonHugePages:" {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("smaps: %q: %w", line, err)
			}
			total += kib << 10
		}
	}
	return total, nil
}
