package accesslog

import (
	"errors"
	"io"
	"iter"
)

// entries ranges over the entries and bad lines of a log. Any other error comes last.
func entries(log *Log) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for {
			e, err := log.Next()
			if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return
			}
			bad := (*LineError)(nil)
			if !yield(e, err) || err != nil && !errors.As(err, &bad) {
				return
			}
		}
	}
}
