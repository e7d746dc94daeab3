package accesslog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Stdin is the name by which Open knows standard input.
const Stdin = "-"

// Source is an opened log, as stored: perhaps compressed.
type Source struct {
	io.ReadCloser
	Name string // for messages
	Size int64  // bytes, -1 when it cannot be known, as for a pipe
}

// Open opens the log at path, or standard input for Stdin. The errors say what
// to do about a file that is missing, a directory or not readable.
func Open(path string) (*Source, error) {
	file, name := os.Stdin, "standard input"
	if path != Stdin {
		var err error
		if file, err = os.Open(path); err != nil {
			return nil, explainOpen(path, err)
		}
		name = path
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(explainOpen(name, err), file.Close())
	}
	if info.IsDir() {
		return nil, errors.Join(fmt.Errorf("%s is a directory: name one log file, plain or gzip", name), file.Close())
	}
	size := int64(-1)
	if info.Mode().IsRegular() {
		size = info.Size()
	}
	return &Source{ReadCloser: file, Name: name, Size: size}, nil
}

func explainOpen(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s: give the path of an access log, or - for standard input", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to read %s: run as a user who may, or change the file's mode", path)
	default:
		return fmt.Errorf("cannot open %s: %w", path, err)
	}
}
