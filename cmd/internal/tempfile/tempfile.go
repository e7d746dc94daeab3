// Package tempfile makes temporary files that are gone with the process.
package tempfile

import (
	"errors"
	"fmt"
	"os"
)

// File is a temporary file.
type File struct{ *os.File }

// New makes an empty one in TMPDIR. The error says what it is for, and what to do.
func New(what string) (*File, error) {
	f, err := os.CreateTemp("", "weir-replay-")
	if err != nil {
		return nil, Explain(what, err)
	}
	_ = os.Remove(f.Name()) // where the system allows it; else Close does
	return &File{f}, nil
}

// Close lets the file go.
func (f *File) Close() error {
	err := f.File.Close()
	if removed := os.Remove(f.Name()); removed != nil && !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// Explain says for what a temporary file was that failed, and what to do.
func Explain(what string, err error) error {
	return fmt.Errorf("the temporary file of %s failed (set TMPDIR to a directory with room for it): %w", what, err)
}
