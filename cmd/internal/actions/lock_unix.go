//go:build unix

package actions

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockTimeout is how long lock waits. A process that was stopped during a change can hold the lock for longer.
const lockTimeout = 2 * time.Second

// lock waits at most lockTimeout until no other process changes the file. The caller must call done at the end.
func (f *file) lock() (done func(), err error) {
	if f.path == "" {
		return func() {}, nil
	}
	lockFile, err := os.OpenFile(f.path+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockTimeout); ; time.Sleep(10 * time.Millisecond) {
		err = unix.Flock(int(lockFile.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR && err != unix.EWOULDBLOCK || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		_ = lockFile.Close()
		return nil, fmt.Errorf("%s: another process holds it: %w", lockFile.Name(), err)
	}
	return func() { _ = lockFile.Close() }, nil // closing the file unlocks it
}

// ownedByUs refuses the file of another user, because that user could exempt any client.
func ownedByUs(info fs.FileInfo, path string) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, and this process runs as user %d: have it removed, or use another folder", path,
			stat.Uid, os.Geteuid())
	}
	return nil
}
