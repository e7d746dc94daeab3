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

// A File is attached and mapped until it is collected, if it is not closed: nothing else tells that no goroutine is
// within the table.
type File struct {
	fd       int
	path     string
	mapped   []byte
	secret   Secret
	claimant uint64
	ahead    int64 // of the timeline, of this process's monotonic clock
	boot     [2]uint64
	cleanup  runtime.Cleanup
}

const (
	maxTaken    = 1<<(54-seatBits) - 1
	attachingAt = 1 << 50 // the byte that is locked while a process begins a timeline; seats are behind it
	attachTime  = 5 * time.Second
	collectTime = 500 * time.Millisecond // for seats of files that are not used any more
)

// A seat is the words of one in the file.
type seat struct {
	taken atomic.Uint64 // how often
	pid   atomic.Uint64 // of the process that took it last
	since atomic.Int64  // when, on the timeline
	_     [seatBytes - 24]byte
}

// newFile takes a seat and finds the time. Any number of processes may do so at once.
func newFile(fd int, path string, mapped []byte, secret Secret, s Spec) (*File, error) {
	f := &File{fd: fd, path: path, mapped: mapped, secret: secret}
	if err := f.findTime(s); err != nil {
		return nil, err
	}
	if err := f.sit(); err != nil {
		return nil, err
	}
	if err := s.Settle(f.Memory(), f.alone); err != nil {
		return nil, err
	}
	// Nobody is there to be told of an error.
	f.cleanup = runtime.AddCleanup(f, func(mapped []byte) { _ = release(fd, mapped) }, mapped)
	return f, nil
}

// alone reports whether nobody else has a seat.
func (f *File) alone() bool {
	others, err := held(f.fd, seatAt(0), seats)
	return err == nil && !others
}

// Close gives the file up at once. No goroutine may use its memory any more.
func (f *File) Close() error {
	f.cleanup.Stop()
	return release(f.fd, f.mapped)
}

// release unmaps the file and gives the seat back.
func release(fd int, mapped []byte) error { return errors.Join(unix.Munmap(mapped), unix.Close(fd)) }

// seats returns the seats of the file.
func (f *File) seats() *[seats]seat { return (*[seats]seat)(unsafe.Pointer(&f.mapped[seatsAt])) }

// sit takes a seat that nobody has.
func (f *File) sit() error {
	for i := range f.seats() {
		switch err := lock(f.fd, unix.F_OFD_SETLK, unix.F_WRLCK, seatAt(uint64(i)), 1); {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
			continue
		case err != nil:
			return fmt.Errorf("lock a seat: %w", err)
		}
		seat := &f.seats()[i]
		taken := seat.taken.Load()%maxTaken + 1
		seat.pid.Store(uint64(os.Getpid()))
		seat.since.Store(f.Now())
		seat.taken.Store(taken) // from here on the one before is dead
		f.claimant = taken<<seatBits | uint64(i)
		return nil
	}
	return errFull
}

// errFull is the error of a file of which every seat is taken.
var errFull = fmt.Errorf("%d limiters have the file, and no more can", seats)

func seatAt(i uint64) int64 { return attachingAt + 1 + int64(i) }

// lock does something with the lock of some bytes, by the open file description.
func lock(fd, command int, kind int16, at, length int64) error {
	return unix.FcntlFlock(uintptr(fd), command, &unix.Flock_t{Type: kind, Start: at, Len: length})
}

// held reports whether another open file description has a lock of some bytes.
func held(fd int, at, length int64) (bool, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: length}
	err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l)
	return l.Type != unix.F_UNLCK, err
}

// lockAttaching makes this process the only one that begins a timeline. One that is stopped meanwhile is waited for,
// but not for ever.
func lockAttaching(fd int) error {
	err := waitForLock(fd, attachingAt, time.Now(), attachTime)
	if errors.Is(err, errWaited) {
		return fmt.Errorf("time: another process has been about to begin the time of this boot for %v: is it stopped?", attachTime)
	}
	return err
}

// errWaited says that another process has had a lock for too long.
var errWaited = errors.New("another process has the lock")

// waitForLock locks a byte. It waits until so long after a time for whoever has it.
func waitForLock(fd int, at int64, began time.Time, patience time.Duration) error {
	for ; ; time.Sleep(time.Millisecond) {
		err := lock(fd, unix.F_OFD_SETLK, unix.F_WRLCK, at, 1)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES):
			return fmt.Errorf("lock the file: %w", err)
		case time.Since(began) > patience:
			return errWaited
		}
	}
}

func unlockAttaching(fd int) error { return lock(fd, unix.F_OFD_SETLK, unix.F_UNLCK, attachingAt, 1) }

// Memory returns the memory of the table.
func (f *File) Memory() []byte { return f.mapped[headerBytes:] }

// Secret returns what the keys of the table are hashed with.
func (f *File) Secret() Secret { return f.secret }

// Claimant returns the number of this attachment: no other one of the file ever has it.
func (f *File) Claimant() uint64 { return f.claimant }

// Dead reports whether an attachment has ended. If the system cannot tell, it is alive.
func (f *File) Dead(claimant uint64) bool {
	if claimant == f.claimant {
		return false
	}
	i := claimant % seats
	if f.seats()[i].taken.Load() != claimant>>seatBits {
		return true // the seat was given back, and taken by another
	}
	if i == f.claimant%seats {
		return true // and that is this one: no lock would be in its own way
	}
	held, err := held(f.fd, seatAt(i), 1)
	return err == nil && !held
}
