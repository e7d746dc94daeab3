// Package atomicfile replaces files atomically: a reader sees the complete old content or the complete new content, and
// a failed write changes nothing.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
)

// Write replaces the content of a file with the output of the function write. It writes a temporary file in the same
// folder, flushes it to the disk, and renames it. If name is a symbolic link, Write replaces the link's target. A new
// file has the permissions 0666, without the bits of the umask. An existing file keeps its permissions. A file that is
// not regular, such as /dev/stdout or a named pipe, is written directly.
//
// The error names the file. When Write returns, the temporary file no longer exists.
func Write(name string, write func(io.Writer) error) error {
	if err := replace(name, 0o666, write); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return nil
}

// WritePrivate does the same as Write, for a file that only its user can access (0600). If the system supports it,
// WritePrivate also flushes the folder, so that the content survives a crash of the machine.
func WritePrivate(name string, write func(io.Writer) error) error {
	err := replace(name, 0o600, write)
	if err == nil && runtime.GOOS != "windows" {
		err = syncFolder(filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return nil
}

func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func replace(name string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	old, err := os.Stat(name)
	switch {
	case err == nil && !old.Mode().IsRegular():
		return writeDirectly(name, write)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temporary := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s-%016x", filepath.Base(name), rand.Uint64()))
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary))
		}
	}()
	if old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = writeBuffered(f, write)
	}
	if err == nil {
		// Without this flush, a crash of the machine soon after the rename could leave an empty file under the new
		// name.
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}

// writeDirectly writes to the existing file, without a temporary file.
func writeDirectly(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(writeBuffered(f, write), f.Close())
}

func writeBuffered(f *os.File, write func(io.Writer) error) error {
	b := bufio.NewWriter(f)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}
