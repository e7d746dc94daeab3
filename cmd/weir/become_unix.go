//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

const executableSuffix = ""

// become replaces this program by another one in the same process, which then gets the signals. It returns only on
// failure.
func become(path string, args []string) error {
	err := syscall.Exec(path, append([]string{path}, args...), os.Environ())
	return fmt.Errorf("%s: %w", path, err)
}
