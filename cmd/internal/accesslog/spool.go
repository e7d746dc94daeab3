package accesslog

import (
	"errors"
	"io"

	"github.com/weir-go/weir/cmd/internal/tempfile"
)

// A spool makes a stream readable again by a copy of the bytes that were read. Without room for the copy, the stream
// can be read once.
type spool struct {
	stream  io.ReadCloser
	copy    *tempfile.File // nil before the first byte, and after a failure
	offset  int64          // offset of the next byte to read
	written int64          // bytes in the copy
	copyErr error          // why there is no copy
}

// Read reads first from the copy, then from the stream.
func (s *spool) Read(p []byte) (n int, err error) {
	if s.offset < s.written {
		if n, err = s.copy.ReadAt(p[:min(int64(len(p)), s.written-s.offset)], s.offset); err != nil {
			err = tempfile.Explain(s.description(), err)
		}
	} else if n, err = s.stream.Read(p); n > 0 {
		s.save(p[:n])
	}
	s.offset += int64(n)
	return n, err
}

func (*spool) description() string { return "what was read of a stream" }

func (s *spool) save(p []byte) {
	if s.copyErr == nil && s.copy == nil {
		s.copy, s.copyErr = tempfile.New(s.description())
	}
	if s.copyErr != nil {
		return
	}
	n, err := s.copy.Write(p)
	s.written += int64(n)
	if err != nil {
		s.copyErr = errors.Join(tempfile.Explain(s.description(), err), s.copy.Close())
		s.copy, s.written = nil, 0
	}
}

// rewind makes the stream start over. The error says why it cannot.
func (s *spool) rewind() error {
	if s.copyErr == nil {
		s.offset = 0
	}
	return s.copyErr
}

// Close closes the stream and the copy.
func (s *spool) Close() error {
	err := s.stream.Close()
	if s.copy != nil {
		err = errors.Join(err, s.copy.Close())
		s.copy, s.written = nil, 0
	}
	return err
}
