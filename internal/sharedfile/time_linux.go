package sharedfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// A clock is the content of page 1. It says how far the timeline is ahead of the machine's monotonic clock, and for
// which boot this is valid.
type clock struct {
	boot   [2]atomic.Uint64
	offset atomic.Int64
	check  atomic.Uint64
}

// latestMark is the latest watermark that a table may have, in the year 2116. With a later watermark, too little time
// would be left until the nanoseconds overflow.
const latestMark = math.MaxInt64 / 2

// findTime determines how far the timeline is ahead of the monotonic clock. The first process that attaches after a
// boot starts the timeline. While other processes are attached, their timeline continues.
func (f *File) findTime(spec Spec) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	nsOffset, err := namespaceOffset()
	if err != nil {
		return err
	}
	c := clockOf(f.mapped)
	if !c.isValidFor(boot) {
		if err := lockAttaching(f.fd); err != nil {
			return err
		}
		if !c.isValidFor(boot) { // otherwise another process has started the timeline meanwhile
			if err := f.beginTime(spec); err != nil {
				return err
			}
		}
		if err := unlockAttaching(f.fd); err != nil {
			return err
		}
	}
	f.offset, f.boot = c.offset.Load()-nsOffset, boot
	return nil
}

func (f *File) beginTime(spec Spec) error {
	if !f.isAlone() {
		return errors.New("time: the page of the clock is damaged or of another boot, and other processes use what it " +
			"said: they write it again with their next sweep, so try again in some seconds; or stop all of them, and the next one " +
			"finds the time by the table")
	}
	mark, err := spec.Mark(f.Memory())
	if err != nil {
		return err
	}
	if mark < 0 || mark > latestMark {
		return fmt.Errorf("time: the table's mark is at %d ns: the file is damaged, remove it", mark)
	}
	if spec.Boot != nil {
		if err := spec.Boot(f.Memory()); err != nil {
			return err
		}
	}
	_, err = beginTime(f.mapped, max(spec.Start, mark))
	return err
}

// beginTime starts the timeline of a file at the time start. It returns how far the timeline is ahead of this process's
// monotonic clock.
func beginTime(mapped []byte, start int64) (offset int64, err error) {
	boot, err := bootID()
	if err != nil {
		return 0, err
	}
	nsOffset, err := namespaceOffset()
	if err != nil {
		return 0, err
	}
	now, err := monotonic()
	if err != nil {
		return 0, err
	}
	clockOf(mapped).write(boot, start-now+nsOffset)
	return start - now, nil
}

func clockOf(mapped []byte) *clock { return (*clock)(unsafe.Pointer(&mapped[clockAt])) }

func (c *clock) isValidFor(boot [2]uint64) bool {
	return c.boot[0].Load() == boot[0] && c.boot[1].Load() == boot[1] && c.check.Load() == c.sum()
}

// write sets the offset of the timeline from the machine's clock, and the boot for which it is valid.
func (c *clock) write(boot [2]uint64, offset int64) {
	c.check.Store(0)
	c.boot[0].Store(boot[0])
	c.boot[1].Store(boot[1])
	c.offset.Store(offset)
	c.check.Store(c.sum())
}

// repairClock rewrites the page of the clock with the values of this process, if the page is damaged. All attached
// processes have the same values.
func (f *File) repairClock() {
	nsOffset, err := namespaceOffset()
	if c := clockOf(f.mapped); err == nil && !c.isValidFor(f.boot) {
		c.write(f.boot, f.offset+nsOffset)
	}
}

func (c *clock) sum() uint64 {
	var text [24]byte
	binary.NativeEndian.PutUint64(text[:], c.boot[0].Load())
	binary.NativeEndian.PutUint64(text[8:], c.boot[1].Load())
	binary.NativeEndian.PutUint64(text[16:], uint64(c.offset.Load()))
	return xxhash.Sum64(text[:]) | 1
}

// Now returns the time on the timeline. A process calls Now only once, to find the offset of its own clock, because Now
// costs a system call.
func (f *File) Now() int64 {
	now, _ := monotonic() // findTime has checked that it works
	return f.offset + now
}

// monotonic reads the process's monotonic clock, in nanoseconds. Outside of time namespaces, this is the machine's
// clock.
func monotonic() (int64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("read the monotonic clock: %w", err)
	}
	return now.Nano(), nil
}

// namespaceOffset returns how far the monotonic clock of this process's time namespace is ahead of the machine's clock.
// The kernel reports only the offset of the namespace in which child processes will be. If the process has made another
// namespace for its children, the offset of its own namespace is unknown, and namespaceOffset returns an error.
func namespaceOffset() (int64, error) {
	text, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return 0, nil // a kernel without time namespaces
	}
	current, ownErr := os.Readlink("/proc/self/ns/time")
	children, err := os.Readlink("/proc/self/ns/time_for_children")
	if ownErr == nil && err == nil && current != children {
		return 0, errors.New("time: this process has made a time namespace for its children only, so how far its clock is " +
			"ahead of the machine's cannot be told: start it within the namespace (unshare --time --fork)")
	}
	for line := range strings.Lines(string(text)) {
		var seconds, nanos int64
		if n, _ := fmt.Sscanf(line, "monotonic %d %d", &seconds, &nanos); n == 2 {
			return seconds*1e9 + nanos, nil
		}
	}
	return 0, nil
}

func bootID() (id [2]uint64, err error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id, fmt.Errorf("time: the id of this boot cannot be read: %w", err)
	}
	if len(text) == 0 {
		return id, errors.New("time: the kernel's boot_id is empty")
	}
	return [2]uint64{xxhash.Sum64(text), xxhash.Sum64(append(text, 1))}, nil
}
