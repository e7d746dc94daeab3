//go:build !linux

package sharedfile

import (
	"errors"
	"runtime"
)

// A File is none on this system.
type File struct{}

var errSystem = errors.New("a table of several processes is for Linux only, and this is " + runtime.GOOS)

// Open returns an error.
func Open(string, Spec) (*File, error) { return nil, errSystem }

// The methods of a File are never called.
func (*File) Memory() []byte   { return nil }
func (*File) Secret() Secret   { return Secret{} }
func (*File) Now() int64       { return 0 }
func (*File) Close() error     { return errSystem }
func (*File) Claimant() uint64 { return 0 }
func (*File) Dead(uint64) bool { return false }
