package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/schemata"
)

// The constant hung stands for the name of a test if the tests broke off or were stopped, because they did not end.
const hung = "(no end)"

// The method try returns the test that fails with a change, or "". A test counts only if it then passes without the
// change, within the same bounds. The result is an error if tests are stopped without the change, too.
func (b *binary) try(path string, number int, tests []test) (string, error) {
	for len(tests) > 0 {
		found, err := b.run(path, number, tests)
		if found == "" || err != nil {
			return "", err
		}
		suspects := tests
		if found != hung {
			suspects = slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return t.name != found })
		}
		if len(suspects) == 0 {
			return "", fmt.Errorf("%s of %s fails and was not asked for", found, b.name)
		}
		unchanged, err := b.run(b.path, 0, suspects)
		switch {
		case err != nil:
			return "", err
		case unchanged == "":
			return found, nil
		case unchanged == hung:
			return "", fmt.Errorf("tests of %s do not end without a change: %s", b.name, b.pattern(suspects))
		}
		fmt.Printf("does not count, because it fails without a change, too: %s of %s\n", unchanged, b.name)
		tests = slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return t.name == unchanged })
	}
	return "", nil
}

// The regular expression crashed matches what Go writes when a program breaks off.
var crashed = regexp.MustCompile(`(?m)^(panic|fatal error|runtime|SIG[A-Z]+): |^unexpected fault address `)

// The method run runs tests with a change, and returns the first that fails, or "". The processor time is limited to a
// multiple of the time that the unchanged code took. The address space is limited to the 12 GB that all tests together
// need. If the tests exceed these bounds or break off, the result is hung. If something else stops them, the result is
// an error.
func (b *binary) run(path string, number int, tests []test) (string, error) {
	seconds := 0.0
	for _, t := range tests {
		seconds += t.seconds
	}
	processor := 1 + int(6*seconds)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Duration(processor)*10*time.Second)
	defer cancel()
	temporary, err := os.MkdirTemp("", "mutate") // tests that are stopped leave files there
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary)
	limits := fmt.Sprintf("ulimit -t %d; ulimit -v 12000000; exec \"$0\" \"$@\"", processor)
	args := append([]string{"-c", limits, path, "-test.failfast", "-test.timeout=0", "-test.run", b.pattern(tests)}, b.flags...)
	c := exec.CommandContext(ctx, "sh", args...)
	c.Dir, c.Env = filepath.Join(b.root, b.folder), append(environment(number), "TMPDIR="+temporary)
	out, err := c.CombinedOutput()
	if err == nil {
		return "", nil
	} else if c.ProcessState == nil {
		return "", err
	}
	for _, f := range failed.FindAllStringSubmatch(string(out), -1) {
		if strings.Contains(f[1], "/") || !b.parts {
			return f[1], nil
		}
	}
	// On virtual machines, the kernel stops a process that has used 0.8 of its time, as its own account says later.
	if ctx.Err() != nil || crashed.Match(out) || processorTime(c) > 0.5*float64(processor) {
		return hung, nil
	}
	return "", fmt.Errorf("the tests of %s with change %d were stopped: %w\n%s", b.name, number, err, out)
}

// environment returns the environment of tests of the change with this number, or of the unchanged code for 0. They
// run all interleavings.
func environment(number int) []string {
	return append(os.Environ(), "WEIR_EXPLORE=", fmt.Sprintf("%s=%d", schemata.Variable, number))
}

func processorTime(c *exec.Cmd) float64 {
	return (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
}
