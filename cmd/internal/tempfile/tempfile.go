// Package tempfile makes temporary files that are deleted when the process ends.
package tempfile

import (
	"errors"
	"fmt"
	"os"
)

// File is a temporary file.
type File struct{ *os.File }

// New makes an empty file in TMPDIR. The parameter what is the purpose of the file. An error names the purpose, and
// says what to do.
func New(what string) (*File, error) {
	f, err := os.CreateTemp("", "weir-replay-")
	if err != nil {
		return nil, Explain(what, err)
	}
	_ = os.Remove(f.Name()) // if the system permits it; otherwise Close removes the file
	return &File{f}, nil
}

// Close closes and removes the file.
func (f *File) Close() error {
	err := f.File.Close()
	if removed := os.Remove(f.Name()); removed != nil && !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// Explain returns an error that says for which purpose a temporary file was needed, and what to do.
func Explain(what string, err error) error {
	return fmt.Errorf("the temporary file of %s failed (set TMPDIR to a directory with room for it): %w", what, err)
}
