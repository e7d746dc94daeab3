// Package tempfile makes temporary files that are deleted when the process ends.
package tempfile

import (
	"errors"
	"fmt"
	"os"
)

// File is a temporary file.
type File struct{ *os.File }

// New makes an empty file in TMPDIR. An error names the purpose of the file, and says what to do.
func New(purpose string) (*File, error) {
	f, err := os.CreateTemp("", "weir-replay-")
	if err != nil {
		return nil, Explain(purpose, err)
	}
	_ = os.Remove(f.Name()) // if the system permits it; otherwise Close removes the file
	return &File{f}, nil
}

// Close closes and removes the file.
func (f *File) Close() error {
	err := f.File.Close()
	if removeErr := os.Remove(f.Name()); removeErr != nil && !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}

// Explain returns an error that says for which purpose a temporary file was needed, and what to do.
func Explain(purpose string, err error) error {
	return fmt.Errorf("the temporary file of %s failed (set TMPDIR to a directory with room for it): %w", purpose, err)
}
