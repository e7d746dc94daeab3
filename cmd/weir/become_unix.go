//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

const executableSuffix = ""

// become replaces this program by another one in the same process. The other program then gets the signals, and its
// exit status is that of the process. become returns only if this fails.
func become(path string, args []string) error {
	err := syscall.Exec(path, append([]string{path}, args...), os.Environ())
	return fmt.Errorf("%s: %w", path, err)
}
