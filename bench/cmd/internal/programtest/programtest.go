// Package programtest runs a main function as a process of its own, from the tests of its package, without
// building it: the test binary runs itself.
package programtest

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// variable is set in the processes that are the program, not the tests.
const variable = "WEIR_BENCH_TEST_PROGRAM"

// Main implements TestMain of the package: it calls the program if Execute started the process, otherwise it runs the
// tests.
func Main(m *testing.M, program func()) {
	if os.Getenv(variable) != "" {
		program()
		return
	}
	os.Exit(m.Run())
}

// Execute runs the program with arguments, and with variables in addition to those of this process.
func Execute(t *testing.T, environment []string, arguments ...string) (status int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, arguments...)
	cmd.Env = append(append(os.Environ(), variable+"=1"), environment...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// A Refusal is a command line that the program must refuse.
type Refusal struct {
	Arguments []string
	Status    int
	Want      string // in what it prints to stderr
}

// Refuses runs the program with every command line, by name, and checks its status and its message.
func Refuses(t *testing.T, refusals map[string]Refusal) {
	t.Helper()
	for name, r := range refusals {
		status, _, stderr := Execute(t, nil, r.Arguments...)
		assert.Equal(t, r.Status, status, name)
		assert.Contains(t, stderr, r.Want, name)
	}
}
