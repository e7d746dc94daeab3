package sharedfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Open attaches to the file at path. If there is no file, Open makes it first. The error says what is wrong with the
// file, or names the field in which the file and the process differ, and says what to do. The error does not contain
// the path.
func Open(path string, spec Spec) (*File, error) {
	if spec.Bytes > MaxBytes-headerBytes {
		return nil, fmt.Errorf("a table of %d bytes: want at most %d", spec.Bytes, uint64(MaxBytes-headerBytes))
	}
	for range 8 { // other processes may make and remove the file meanwhile
		f, err := attach(path, spec)
		if errors.Is(err, errFull) {
			f, err = attachAfterCollection(path, spec)
		}
		if !errors.Is(err, errNoFile) {
			return f, err
		}
		if err := createOnce(path, spec); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, err
		}
	}
	return nil, errors.New("the file was removed repeatedly while this process attached to it: stop what removes it")
}

// attachAfterCollection does the same as attach, for a file whose seats are all taken. A [File] of this process that is
// no longer used keeps its seat until the garbage collector collects it. This may take minutes. So
// attachAfterCollection runs the collector, for at most about half a second. One collection is not always enough:
// objects that use a File may have to be collected first, and cleanups run in their own goroutines.
func attachAfterCollection(path string, spec Spec) (f *File, err error) {
	for wait := time.Millisecond; wait < collectTime; wait *= 2 {
		runtime.GC()
		time.Sleep(wait)
		if f, err = attach(path, spec); !errors.Is(err, errFull) {
			break
		}
	}
	return f, err
}

// errNoFile is the error if there is no file, or if the file was just removed.
var errNoFile = fmt.Errorf("open: %w", unix.ENOENT)

// attach attaches to an existing file. If there is none, it returns errNoFile.
func attach(path string, spec Spec) (f *File, err error) {
	fd, err := openFile(path, unix.O_RDWR, false)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd) // the earlier error is reported
		}
	}()
	page, size, err := readPage(fd, false)
	if err != nil {
		return nil, err
	}
	fields, secret, err := readHeader(page, size)
	if err == nil {
		if err = difference(fields, spec.Fields); err == nil && size != headerBytes+spec.Bytes {
			err = fmt.Errorf("length: the file has %d bytes, this process wants %d", size, headerBytes+spec.Bytes)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: give all processes the same numbers and options, "+
			"or another file, or remove this one when no process uses it: every bucket is full then", err)
	}
	if err := allocate(fd, size, filepath.Dir(path)); err != nil {
		return nil, err
	}
	mapped, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	if f, err = newFile(fd, path, mapped, secret, spec); err != nil {
		return nil, errors.Join(err, unix.Munmap(mapped))
	}
	return f, nil
}

// allocate makes the system provide every page of a file. A sparse copy may have holes. A process that writes to a hole
// while the disk is full would be killed. For a file in memory (tmpfs), allocate first checks the number of allocated
// blocks, because this shows more cheaply whether a page is missing.
func allocate(fd int, size uint64, folder string) error {
	const tmpfs, blockBytes = 0x01021994, 512
	var system unix.Statfs_t
	var info unix.Stat_t
	if err := errors.Join(unix.Fstatfs(fd, &system), unix.Fstat(fd, &info)); err != nil {
		return err
	}
	if int64(system.Type) == tmpfs && uint64(info.Blocks)*blockBytes >= size {
		return nil
	}
	if err := unix.Fallocate(fd, 0, 0, int64(size)); err != nil {
		return fmt.Errorf("allocate %d bytes in %s: %w", size, folder, err)
	}
	return nil
}

// openFile opens an existing file, or returns errNoFile. If anyOwner is true, the file and its folder may belong to any
// user.
func openFile(path string, access int, anyOwner bool) (fd int, err error) {
	if !anyOwner {
		if err := Protected(filepath.Dir(path)); err != nil {
			return 0, err
		}
	}
	fd, err = unix.Open(path, access|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, explain(path, err)
	}
	return fd, nil
}

// readPage returns page 0 of an open file that can hold a table, and the length of the file.
func readPage(fd int, anyOwner bool) (page []byte, size uint64, err error) {
	if size, err = examine(fd, anyOwner); err != nil {
		return nil, 0, err
	}
	page = make([]byte, pageBytes)
	if n, err := unix.Pread(fd, page, 0); err != nil || n < pageBytes {
		return nil, 0, fmt.Errorf("the file has %d bytes: %w", size, errors.Join(errForeign, err))
	}
	return page, size, nil
}

func explain(path string, err error) error {
	info, statErr := os.Lstat(path)
	switch {
	case errors.Is(err, unix.ENOENT): // another process may be making the file
		return errNoFile
	case statErr == nil && info.Mode()&os.ModeSymlink != 0:
		return errors.New("this is a symbolic link: want the file's own path")
	case statErr == nil && !info.Mode().IsRegular():
		return fmt.Errorf("this is %v, and not a regular file", info.Mode().Type())
	case errors.Is(err, unix.EACCES) && checkOwnerOf(path, "the file") != nil:
		return checkOwnerOf(path, "the file")
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: the file must be readable and writable by this process (user %d)", err, os.Geteuid())
	}
	return err
}

// examine checks that an open file can hold a table, and returns its length.
func examine(fd int, anyOwner bool) (size uint64, err error) {
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return 0, err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, errors.New("this is not a regular file")
	}
	if info.Nlink == 0 {
		return 0, errNoFile
	}
	if anyOwner {
		return uint64(info.Size), checkLocal(fd)
	}
	if err := checkOwner(info.Uid, "the file"); err != nil {
		return 0, err
	}
	if mode := info.Mode & 0o777; mode&0o077 != 0 {
		return 0, fmt.Errorf("mode: the file has %04o: want 0600, because a program that can read it can choose keys with equal hashes, "+
			"and who can write it decides", mode)
	}
	return uint64(info.Size), checkLocal(fd)
}

// networkFileSystems has the file systems whose files other machines may have mapped. There, a word of the file can be
// in the memory of several machines, so atomic operations do not work.
var networkFileSystems = map[int64]string{
	0x6969: "NFS", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x517b: "SMB", 0x01021997: "9P", 0x00c36400: "Ceph",
	0x5346414f: "AFS", 0x6b414653: "AFS", 0x73757245: "Coda", 0x7461636f: "OCFS2", 0x01161970: "GFS2",
	0x0bd00bd0: "Lustre", 0x65735546: "FUSE", 0x47504653: "GPFS", 0x786f4256: "a folder of VirtualBox",
}

// checkLocal checks that an open file is on this machine, as far as that is known.
func checkLocal(fd int) error {
	var system unix.Statfs_t
	if err := unix.Fstatfs(fd, &system); err != nil {
		return err
	}
	if name, isRemote := networkFileSystems[int64(uint32(system.Type))]; isRemote {
		return fmt.Errorf("file system: %s is not memory of one machine: want a file in /dev/shm or on a local disk", name)
	}
	return nil
}
