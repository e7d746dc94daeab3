//go:build !linux

package journal

import (
	"errors"
	"os"
	"runtime"
)

var errSystem = errors.New("files with debts need Linux, and this is " + runtime.GOOS)

func lock(*os.File) (bool, error) { return false, errSystem }

func protected(string) error { return errSystem }
