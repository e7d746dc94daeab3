package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Error is one mistake in a file, or a warning about it.
type Error struct {
	File         string
	Line, Column int // from 1; 0 if the mistake has no place, for example in an empty file
	Message      string
}

// Error returns "weir.yaml:12:5: what is wrong".
func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Message)
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Errors has all mistakes that were found.
type Errors []*Error

// Error returns the mistakes, one per line.
func (errs Errors) Error() string {
	lines := make([]string, len(errs))
	for i, e := range errs {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes, so that errors.As finds them.
func (errs Errors) Unwrap() []error {
	list := make([]error, len(errs))
	for i, e := range errs {
		list[i] = e
	}
	return list
}

// Sorted returns the errors in the order of their places, without duplicates. Duplicates come from anchors: a mistake
// in an anchor is found again at every alias.
func (errs Errors) Sorted() Errors {
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(errs, func(a, b *Error) bool { return *a == *b })
}
