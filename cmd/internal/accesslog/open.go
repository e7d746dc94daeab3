package accesslog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Stdin is the name of standard input in the arguments of Open.
const Stdin = "-"

// Open returns the log in the named files. It reads nothing yet. The name Stdin means standard input. If there is no
// file with a name, the name is a pattern of path/filepath.Match. format is one of Formats, or "" to detect each file's
// format.
//
// The entries come in the order of their times: see Log.Next. The error says what to do about a file that is missing, a
// directory, not readable, or given twice.
func Open(names []string, format string) (*Log, error) {
	wantFormat, err := formatNamed(format)
	if err != nil {
		return nil, err
	}
	l := &Log{format: wantFormat, window: fewLines}
	for _, name := range names {
		paths, err := expand(name)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if err := l.addFile(path); err != nil {
				return nil, errors.Join(err, l.Close())
			}
		}
	}
	if len(l.files) == 0 {
		return nil, errors.New("want the name of an access log, or - for standard input")
	}
	return l, nil
}

func expand(name string) ([]string, error) {
	if _, err := os.Lstat(name); name == Stdin || err == nil || !strings.ContainsAny(name, `*?[`) {
		return []string{name}, nil
	}
	paths, err := filepath.Glob(name)
	if err != nil {
		return nil, fmt.Errorf("the pattern %s: %w", name, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there is no file whose name is of the form %s", name)
	}
	return paths, nil
}

func (l *Log) addFile(path string) error {
	f := &file{log: l, name: path, path: path, index: len(l.files)}
	stream, err := openStream(path)
	if err != nil {
		return err
	}
	if path == Stdin {
		f.name = "standard input"
	}
	if f.info, err = stream.Stat(); err != nil {
		return errors.Join(explainOpen(f.name, err), stream.Close())
	}
	if f.info.IsDir() {
		return errors.Join(fmt.Errorf("%s is a directory: name log files, plain or compressed", path), stream.Close())
	}
	for _, other := range l.files {
		if os.SameFile(f.info, other.info) {
			twice := fmt.Errorf("%s is the same file as %s: its requests would count twice", f.name, other.name)
			return errors.Join(twice, stream.Close())
		}
	}
	l.files = append(l.files, f)
	if f.info.Mode().IsRegular() && path != Stdin {
		return stream.Close() // it is opened again when its entries are due
	}
	f.stream, l.window = &spool{stream: stream}, manyLines // to read a stream again needs room on the disk
	return nil
}

func openStream(path string) (*os.File, error) {
	if path == Stdin {
		return os.Stdin, nil
	}
	stream, err := os.Open(path)
	if err != nil {
		return nil, explainOpen(path, err)
	}
	return stream, nil
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
