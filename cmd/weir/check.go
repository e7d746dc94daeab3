package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/cmd/weir/internal/rules"
)

type checkCommand struct {
	Quiet bool   `short:"q" help:"Print nothing if the file is good."`
	File  string `arg:"" predictor:"file" help:"The rule file (YAML)."`
}

// Help is what "weir check --help" says beyond the flags.
func (*checkCommand) Help() string {
	return `Says what the file means: where it listens, every rule in words, and the memory that they take. A file with mistakes
is answered with all of them, a line each, in the form FILE:LINE:COLUMN: what is wrong, and exit status 1. Nothing
is listened on, but certificates are read.

Try it:

    weir check weir.yaml`
}

// Run implements the command.
func (c *checkCommand) Run() error {
	f, err := loadRules(c.File)
	if err != nil {
		return err
	}
	ip, err := rules.ClientIP(f)
	if err != nil {
		return err
	}
	if _, err := rules.Compile(f, ip); err != nil {
		return err
	}
	if c.Quiet {
		return nil
	}
	fmt.Printf("%s is good\n\n", c.File)
	return f.Describe(os.Stdout)
}

// loadRules reads a rule file. Its mistakes are printed a line each, with nothing before them, as
// editors want it.
func loadRules(name string) (*config.File, error) {
	f, err := config.Load(name)
	var mistakes config.Errors
	if errors.As(err, &mistakes) {
		fmt.Fprintln(os.Stderr, mistakes)
		return nil, fmt.Errorf("%s is not a good rule file: mistakes: %d", name, len(mistakes))
	}
	return f, err
}
