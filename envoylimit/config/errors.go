package config

import (
	"fmt"
	"strings"
)

// maxErrors is where the reading of a document stops: a file with more mistakes is another kind of file.
const maxErrors = 100

// An Error is a mistake in a document, or a warning about it.
type Error struct {
	File   string // its name, or that of the xDS resource
	Line   int    // from 1; 0 where there is no text, as in xDS
	Column int    // from 1
	Reason string // the reference's text where it has one
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// Errors are all mistakes that were found, in the order of the documents.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// orNil is e as an error: nil if there is none.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}
