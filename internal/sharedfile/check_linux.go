package sharedfile

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Check returns an error if the file is no longer at its path, because new processes would get another file. If the
// page of the clock is damaged, Check rewrites it. A call costs two system calls.
func (f *File) Check() error {
	f.repairClock()
	var opened, current unix.Stat_t
	if err := unix.Fstat(f.fd, &opened); err != nil {
		return err
	}
	switch err := unix.Stat(f.path, &current); {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("the file was removed or moved while it is in use: processes that start now make another one, beside "+
			"which this one goes on: restart those that have the old one, or move it back to %s", f.path)
	case err != nil:
		return err
	case opened.Dev != current.Dev || opened.Ino != current.Ino:
		return fmt.Errorf("another file has taken the place of the one in use: processes that start now count in that: restart "+
			"those that have the old one, or move it back to %s", f.path)
	}
	return nil
}
