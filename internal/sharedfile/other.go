//go:build !linux

package sharedfile

import (
	"errors"
	"runtime"
	"time"
)

// A File cannot exist on this system, because Open returns an error.
type File struct{}

var errSystem = errors.New("a table of several processes needs Linux, and this is " + runtime.GOOS)

// Open returns an error.
func Open(string, Spec) (*File, error) { return nil, errSystem }

// Create returns an error.
func Create(string, Spec) error { return errSystem }

// The methods of a File are never called.
func (*File) Memory() []byte   { return nil }
func (*File) Secret() Secret   { return Secret{} }
func (*File) Now() int64       { return 0 }
func (*File) Close() error     { return errSystem }
func (*File) Claimant() uint64 { return 0 }
func (*File) Dead(uint64) bool { return false }
func (*File) Check() error     { return errSystem }

// A View cannot exist on this system, because OpenView returns an error.
type View struct{}

// OpenView returns an error.
func OpenView(string, func([]Field) (uint64, error)) (*View, error) { return nil, errSystem }

// The methods of a View are never called.
func (*View) Close() error                    { return errSystem }
func (*View) Fields() []Field                 { return nil }
func (*View) Secret() Secret                  { return Secret{} }
func (*View) Bytes() uint64                   { return 0 }
func (*View) Memory() []byte                  { return nil }
func (*View) Made() time.Time                 { return time.Time{} }
func (*View) Read(func()) error               { return errSystem }
func (*View) Now() (int64, bool)              { return 0, false }
func (*View) Attached() ([]Attachment, error) { return nil, errSystem }
func (*View) Claimant() uint64                { return 1 }
func (*View) Dead(uint64) bool                { return false }
