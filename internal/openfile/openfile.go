// Package openfile opens files for reading without waiting.
package openfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a file for reading. If the file is a named pipe, Open does not wait for a writer. A pipe without a writer
// counts as empty.
func Open(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Regular opens a regular file for reading. For anything else, such as a folder or a pipe, it returns an error that
// names the file.
func Regular(name string) (*os.File, fs.FileInfo, error) {
	file, err := Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("want a regular file, got %s", info.Mode())}
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}
