package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	usage := errors.New("want check, or release -version v1.2.3 [-really]")
	if len(args) == 0 {
		return usage
	}
	tree, err := openTree()
	if err != nil {
		return err
	}
	switch args[0] {
	case "check":
		if len(args) > 1 {
			return usage
		}
		return check(tree, os.Stdout)
	case "release":
		flags := flag.NewFlagSet("release", flag.ContinueOnError)
		version := flags.String("version", "", "of all modules, such as v1.2.3")
		really := flags.Bool("really", false, "commit and tag, rather than say what would be done")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if flags.NArg() > 0 {
			return usage
		}
		return release(tree, *version, *really, os.Stdout)
	}
	return usage
}

// command runs a program in a folder and returns what it printed, without the last line break.
// Its error holds what the program said of it.
func command(folder string, environment []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = folder, append(os.Environ(), environment...)
	var problems strings.Builder
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s in %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), folder, err, out,
			problems.String())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
