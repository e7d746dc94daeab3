package journal

import (
	"errors"
	"os"
	"syscall"

	"github.com/weir-go/weir/internal/sharedfile"
)

// lock tries to lock the file, and reports whether this process now has it. Another process may have locked or removed
// the file before.
func lock(f *os.File) (locked bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	info, err := f.Stat()
	return err == nil && info.Sys().(*syscall.Stat_t).Nlink > 0, err
}

func protected(folder string) error { return sharedfile.Protected(folder) }
