package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// benchCommand runs a separate program with the libraries that weir is compared with. They are not a part of weir.
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

// findBench returns the path of the separate program, in this program's folder or else on the PATH.
func findBench() (string, error) {
	name := benchProgram + executableSuffix
	if self, err := os.Executable(); err == nil {
		// With a separator in its argument, LookPath checks only this path, and that the program may be executed.
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
