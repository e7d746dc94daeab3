package sharedfile

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A draft is a file that is being made. It has no name yet, so no file is left if its maker is killed. On a file system
// where a file must have a name, the draft has a temporary name.
type draft struct {
	fd   int
	name string // "" if the draft has no name
}

// Create makes the file at path without attaching to it. If the file exists, it returns an error.
func Create(path string, spec Spec) error {
	if err := Protected(filepath.Dir(path)); err != nil {
		return err
	}
	return create(path, spec)
}

// createOnce calls create under a lock, because otherwise each concurrent maker would allocate the complete file. If
// another process has made the file meanwhile, createOnce does nothing. If another maker does not finish within the
// time that a slow disk needs, createOnce makes the file itself.
func createOnce(path string, spec Spec) error {
	unlock, err := lockCreation(path, makeTime(headerBytes+spec.Bytes))
	if err != nil {
		return err
	}
	defer unlock()
	if err := unix.Lstat(path, new(unix.Stat_t)); !errors.Is(err, unix.ENOENT) {
		return nil // the file exists: Open attaches, or reports what is wrong
	}
	return create(path, spec)
}

// makeTime returns how long it may take to make a file with the given number of bytes on a slow, busy disk.
func makeTime(bytes uint64) time.Duration {
	const bytesPerSecond = 50 << 20
	return attachTime + time.Duration(bytes/bytesPerSecond)*time.Second
}

// lockCreation makes this process the only one that makes the file at path, until it calls unlock. It locks a lock file
// in the same folder. The function unlock removes the lock file. If a maker is killed, the lock file stays, and the
// next maker takes the file over.
func lockCreation(path string, patience time.Duration) (unlock func(), err error) {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
	for began := time.Now(); ; {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
		if ownerErr := checkOwnerOf(name, "the file "+name); ownerErr != nil {
			err = ownerErr
		}
		if err != nil {
			_ = unix.Close(fd) // fd may be open
			return nil, explainFolder(path, err)
		}
		err = waitForLock(fd, attachingAt, began, patience)
		var info unix.Stat_t
		if err == nil {
			err = unix.Fstat(fd, &info)
		}
		switch {
		case errors.Is(err, errLockTimeout):
			return func() { _ = unix.Close(fd) }, nil // if two makers work nevertheless, the first file gets the name
		case err != nil:
			return nil, errors.Join(err, unix.Close(fd))
		case info.Nlink > 0:
			return func() { _ = errors.Join(unix.Unlink(name), unix.Close(fd)) }, nil
		}
		_ = unix.Close(fd) // the previous maker has finished and removed the lock file
	}
}

// create makes a file. If another process has made the file meanwhile, create returns EEXIST.
func create(path string, spec Spec) error {
	d, err := newDraft(path)
	if err != nil {
		return explainFolder(path, err)
	}
	return d.finish(path, spec)
}

// explainFolder returns an error that says why no file can be made in the folder of a path.
func explainFolder(path string, err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("there is no folder %s", filepath.Dir(path))
	}
	return fmt.Errorf("make a file in %s: %w", filepath.Dir(path), err)
}

func newDraft(path string) (draft, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return newNamedDraft(path)
	}
	return draft{fd: fd}, nil
}

// newNamedDraft does the same as newDraft on a file system where a file must have a name.
func newNamedDraft(path string) (draft, error) {
	name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s-%s", filepath.Base(path), rand.Text()))
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	return draft{fd: fd, name: name}, err
}

// finish fills the draft and gives it the name path. If a file with that name exists, finish returns EEXIST. In both
// cases the draft is gone afterwards.
func (d draft) finish(path string, spec Spec) (err error) {
	defer func() {
		err = errors.Join(err, unix.Close(d.fd))
		if err != nil && d.name != "" {
			_ = unix.Unlink(d.name) // fails if the file already has the name path
		}
	}()
	if err := unix.Fchmod(d.fd, 0o600); err != nil {
		return err
	}
	if err := checkLocal(d.fd); err != nil {
		return err
	}
	size := headerBytes + spec.Bytes
	if err := allocate(d.fd, size, filepath.Dir(path)); err != nil {
		return err
	}
	if err := d.fill(size, spec); err != nil {
		return err
	}
	if err := unix.Fsync(d.fd); err != nil { // the header must be on the disk before the file gets its name
		return err
	}
	return d.publish(path)
}

// fill writes the header and a table without attachments into the draft, and starts the timeline of the file.
func (d draft) fill(size uint64, spec Spec) error {
	mapped, err := unix.Mmap(d.fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %d bytes: %w", size, err)
	}
	var random [32]byte
	if _, err = rand.Read(random[:]); err == nil {
		err = spec.Begin(mapped[headerBytes:])
	}
	if err == nil {
		var secret Secret
		for i := range secret {
			secret[i] = binary.NativeEndian.Uint64(random[8*i:])
		}
		if spec.Secret != nil {
			secret = *spec.Secret
		}
		err = writeHeader(mapped[:pageBytes], spec, secret)
	}
	if err == nil {
		_, err = beginTime(mapped, spec.Start)
	}
	return errors.Join(err, unix.Munmap(mapped))
}

// publish gives the draft its name. If the name is taken, it returns EEXIST.
func (d draft) publish(path string) error {
	if d.name == "" {
		if err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(d.fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
			return fmt.Errorf("give the file its name: %w", err)
		}
		return nil
	}
	err := unix.Renameat2(unix.AT_FDCWD, d.name, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not supported by the file system
		if err = unix.Link(d.name, path); err == nil {
			err = unix.Unlink(d.name)
		}
	}
	return err
}
