//go:build !linux

package journal

import (
	"errors"
	"os"
	"runtime"
)

var errSystem = errors.New("files of what is owed are for Linux only, and this is " + runtime.GOOS)

func lock(*os.File) (bool, error) { return false, errSystem }

func protected(string) error { return errSystem }
