package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/schemata"
)

// The constant hung stands for the name of a test if the tests broke off or did not end.
const hung = "(no end)"

// The method try returns the test that fails with a change, or "". A test counts only if it then passes without the
// change, within the same bounds. The result is an error if tests break off or do not end without the change, too.
//
// The processor time is limited to a multiple of the time that the unchanged code took.
func (b *binary) try(path string, number int, tests []test) (string, error) {
	seconds := 0.0
	for _, t := range tests {
		seconds += t.seconds
	}
	processor := 1 + int(6*seconds)
	for len(tests) > 0 {
		found, err := b.run(path, number, tests, processor)
		if found == "" || err != nil {
			return "", err
		}
		suspects := tests
		if found != hung {
			suspects = slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return t.name != found })
		}
		unchanged, err := b.run(b.path, 0, suspects, processor)
		switch {
		case err != nil:
			return "", err
		case unchanged == "":
			return found, nil
		case unchanged == hung:
			return "", fmt.Errorf("tests of %s do not end without a change: %s", b.name, b.pattern(suspects))
		}
		fmt.Printf("does not count for change %d, because it fails without a change, too: %s of %s\n", number, unchanged, b.name)
		tests = slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return t.name == unchanged })
	}
	return "", nil
}

// The regular expression crashed matches what Go writes when a program breaks off, and what package leakcheck writes.
var crashed = regexp.MustCompile(`(?m)^(panic|fatal error|runtime|leakcheck|SIG[A-Z]+): |^unexpected fault address `)

// The method run runs tests with a change, and returns the first that fails, or "". The processor time is limited to
// the given number of seconds. The address space is limited to the 12 GB that all tests together need. If the tests
// exceed these bounds or break off, the result is hung. If something else stops them, the result is an error.
func (b *binary) run(path string, number int, tests []test, processor int) (string, error) {
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
	c.WaitDelay = time.Second // a process that a test started may have the output open
	out, err := c.CombinedOutput()
	if err == nil {
		return "", nil
	} else if c.ProcessState == nil {
		return "", err
	}
	for _, f := range failed.FindAllStringSubmatch(string(out), -1) {
		if slices.ContainsFunc(tests, func(t test) bool { return t.name == f[1] }) {
			return f[1], nil
		}
	}
	// On some virtual machines, the kernel stops a process whose own account shows 0.8 of the limit.
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
