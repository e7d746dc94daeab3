package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// benchCommand runs a separate program. It has the libraries with which weir is compared, which are not a part of weir.
type benchCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" help:"Flags of the benchmark; --help lists them."`
}

const benchProgram = "weir-bench"

func (c *benchCommand) Run() error {
	path, err := findBench()
	if err != nil {
		return err
	}
	return become(path, c.Args)
}

// findBench returns the path of the separate program. It is in the folder of this program, or else on the PATH.
func findBench() (string, error) {
	name := benchProgram + executableSuffix
	if self, err := os.Executable(); err == nil {
		// If the argument has a separator, LookPath checks only this path. It also checks that the program may be
		// executed.
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(benchProgram)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("there is no %s next to weir or on the PATH: `make build` makes it, "+
			"or go install github.com/weir-go/weir/bench/cmd/%s@latest", benchProgram, benchProgram)
	}
	return path, err
}
