//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

const executableSuffix = ""

// become replaces this program by another program in the same process. Signals then reach the other program, and the
// process ends with its exit status. become returns only if this fails.
func become(path string, args []string) error {
	err := syscall.Exec(path, append([]string{path}, args...), os.Environ())
	return fmt.Errorf("%s: %w", path, err)
}
