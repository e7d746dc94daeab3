package sharedfile

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A File is attached and mapped until it is closed, or until the garbage collector collects it. For an unclosed File,
// only the collector knows when no goroutine uses the table any longer.
type File struct {
	fd       int
	path     string
	mapped   []byte
	secret   Secret
	claimant uint64
	offset   int64 // how far the timeline is ahead of this process's monotonic clock
	boot     [2]uint64
	cleanup  runtime.Cleanup
}

const (
	maxCount    = 1<<(54-seatBits) - 1
	attachingAt = 1 << 50 // the byte that is locked while a process begins a timeline; seats are behind it
	attachTime  = 5 * time.Second
	collectTime = 500 * time.Millisecond // for seats of files that are no longer used
)

// A seat is the memory of one seat in the file.
type seat struct {
	count atomic.Uint64 // how often the seat was taken
	pid   atomic.Uint64 // the process that took the seat last
	since atomic.Int64  // when that process took it, on the timeline
	_     [seatBytes - 24]byte
}

// newFile takes a seat and finds the time on the timeline. Any number of processes may call newFile at the same time.
func newFile(fd int, path string, mapped []byte, secret Secret, spec Spec) (*File, error) {
	f := &File{fd: fd, path: path, mapped: mapped, secret: secret}
	if err := f.findTime(spec); err != nil {
		return nil, err
	}
	if err := f.takeSeat(); err != nil {
		return nil, err
	}
	if err := spec.Settle(f.Memory(), f.isAlone); err != nil {
		return nil, err
	}
	// The error is dropped, because there is no caller to which it could be returned.
	f.cleanup = runtime.AddCleanup(f, func(mapped []byte) { _ = release(fd, mapped) }, mapped)
	return f, nil
}

func (f *File) isAlone() bool {
	locked, err := isLocked(f.fd, seatAt(0), seats)
	return err == nil && !locked
}

// Close unmaps and detaches the file at once. No goroutine may use its memory afterwards.
func (f *File) Close() error {
	f.cleanup.Stop()
	return release(f.fd, f.mapped)
}

func release(fd int, mapped []byte) error { return errors.Join(unix.Munmap(mapped), unix.Close(fd)) }

func (f *File) seats() *[seats]seat { return (*[seats]seat)(unsafe.Pointer(&f.mapped[seatsAt])) }

func (f *File) takeSeat() error {
	for i := range f.seats() {
		switch err := lock(f.fd, unix.F_OFD_SETLK, unix.F_WRLCK, seatAt(uint64(i)), 1); {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
			continue
		case err != nil:
			return fmt.Errorf("lock a seat: %w", err)
		}
		seat := &f.seats()[i]
		count := seat.count.Load()%maxCount + 1
		seat.pid.Store(uint64(os.Getpid()))
		seat.since.Store(f.Now())
		seat.count.Store(count) // from here on the seat's previous attachment is dead
		f.claimant = count<<seatBits | uint64(i)
		return nil
	}
	return errFull
}

var errFull = fmt.Errorf("%d limiters have the file, and no more can", seats)

func seatAt(i uint64) int64 { return attachingAt + 1 + int64(i) }

// lock makes a system call about a lock of the open file description on a range of bytes.
func lock(fd, command int, kind int16, start, length int64) error {
	return unix.FcntlFlock(uintptr(fd), command, &unix.Flock_t{Type: kind, Start: start, Len: length})
}

// isLocked reports whether another open file description has a lock on any of these bytes.
func isLocked(fd int, start, length int64) (bool, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: start, Len: length}
	err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l)
	return l.Type != unix.F_UNLCK, err
}

// lockAttaching makes this process the only one that starts a timeline. If another process has the lock, lockAttaching
// waits for it, but not forever.
func lockAttaching(fd int) error {
	err := waitForLock(fd, attachingAt, time.Now(), attachTime)
	if errors.Is(err, errLockTimeout) {
		return fmt.Errorf("time: another process has been about to begin the time of this boot for %v: is it stopped?", attachTime)
	}
	return err
}

// errLockTimeout is the error if another process has had a lock for too long.
var errLockTimeout = errors.New("another process has the lock")

// waitForLock locks the byte at an offset, the argument start. If another process has the lock, waitForLock waits for
// it. The wait ends at the time began + patience at the latest.
func waitForLock(fd int, start int64, began time.Time, patience time.Duration) error {
	for ; ; time.Sleep(time.Millisecond) {
		err := lock(fd, unix.F_OFD_SETLK, unix.F_WRLCK, start, 1)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES):
			return fmt.Errorf("lock the file: %w", err)
		case time.Since(began) > patience:
			return errLockTimeout
		}
	}
}

func unlockAttaching(fd int) error { return lock(fd, unix.F_OFD_SETLK, unix.F_UNLCK, attachingAt, 1) }

// Memory returns the memory of the table.
func (f *File) Memory() []byte { return f.mapped[headerBytes:] }

// Secret returns the secret for the hashes of the table's keys.
func (f *File) Secret() Secret { return f.secret }

// Claimant returns the number of this attachment. No other attachment of the file ever has the same number.
func (f *File) Claimant() uint64 { return f.claimant }

// Dead reports whether an attachment has ended. If the system does not report this, the attachment counts as alive.
func (f *File) Dead(claimant uint64) bool {
	if claimant == f.claimant {
		return false
	}
	i := claimant % seats
	if f.seats()[i].count.Load() != claimant>>seatBits {
		return true // the seat was released, and taken by another attachment
	}
	if i == f.claimant%seats {
		return true // this attachment itself, whose lock does not block it
	}
	locked, err := isLocked(f.fd, seatAt(i), 1)
	return err == nil && !locked
}
