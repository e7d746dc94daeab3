//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

const executableSuffix = ".exe"

// become runs another program, and ends this program with the exit status of the other. It returns only if the other
// program cannot be started.
func become(path string, args []string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); err == nil || errors.As(err, &exit) {
		os.Exit(cmd.ProcessState.ExitCode())
	}
	return err
}
