//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

const executableSuffix = ""

// become replaces this program by another, which gets its process, its signals and its exit status. It returns only if
// that fails.
func become(path string, args []string) error {
	err := syscall.Exec(path, append([]string{path}, args...), os.Environ())
	return fmt.Errorf("%s: %w", path, err)
}
