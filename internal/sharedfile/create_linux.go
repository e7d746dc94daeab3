package sharedfile

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A draft is a file that is being made. It has no name yet, so nothing is left of it when its maker is killed; or
// another name beside its own, on a file system that has no files without one.
type draft struct {
	fd   int
	name string // or none
}

// create makes a file, unless there is one meanwhile (EEXIST).
func create(path string, s Spec) error {
	d, err := newDraft(path)
	if err != nil {
		if errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("there is no folder %s", filepath.Dir(path))
		}
		return fmt.Errorf("make a file in %s: %w", filepath.Dir(path), err)
	}
	return d.become(path, s)
}

// newDraft begins the file that is to be at path.
func newDraft(path string) (draft, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return newNamedDraft(path)
	}
	return draft{fd: fd}, nil
}

// newNamedDraft is newDraft where a file must have a name.
func newNamedDraft(path string) (draft, error) {
	name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s-%s", filepath.Base(path), rand.Text()))
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	return draft{fd: fd, name: name}, err
}

// become makes the draft the file at path, unless there is one (EEXIST). The draft is gone afterwards.
func (d draft) become(path string, s Spec) (err error) {
	defer func() {
		err = errors.Join(err, unix.Close(d.fd))
		if err != nil && d.name != "" {
			_ = unix.Unlink(d.name) // the file may be at path already
		}
	}()
	if err := unix.Fchmod(d.fd, 0o600); err != nil {
		return err
	}
	if err := local(d.fd); err != nil {
		return err
	}
	size := headerBytes + s.Bytes
	if err := unix.Fallocate(d.fd, 0, 0, int64(size)); err != nil {
		return fmt.Errorf("allocate %d bytes in %s: %w", size, filepath.Dir(path), err)
	}
	if err := d.fill(size, s); err != nil {
		return err
	}
	if err := unix.Fsync(d.fd); err != nil { // no file gets its name before its header is on the disk
		return err
	}
	return d.publish(path)
}

// fill writes a table at which nobody has taken a seat.
func (d draft) fill(size uint64, s Spec) error {
	mapped, err := unix.Mmap(d.fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %d bytes: %w", size, err)
	}
	var random [32]byte
	if _, err = rand.Read(random[:]); err == nil {
		err = s.Begin(mapped[headerBytes:])
	}
	if err == nil {
		var secret Secret
		for i := range secret {
			secret[i] = binary.NativeEndian.Uint64(random[8*i:])
		}
		err = writeHeader(mapped[:pageBytes], s, secret)
	}
	return errors.Join(err, unix.Munmap(mapped))
}

// publish gives the draft its name, unless that is taken (EEXIST).
func (d draft) publish(path string) error {
	if d.name == "" {
		if err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(d.fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
			return fmt.Errorf("give the file its name: %w", err)
		}
		return nil
	}
	err := unix.Renameat2(unix.AT_FDCWD, d.name, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system that cannot
		if err = unix.Link(d.name, path); err == nil {
			err = unix.Unlink(d.name)
		}
	}
	return err
}
