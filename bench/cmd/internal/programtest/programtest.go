// Package programtest runs a main function as a separate process, for the tests of its package. The test binary starts
// itself.
package programtest

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const variable = "WEIR_BENCH_TEST_PROGRAM"

// Main must be called by TestMain. If Execute started the process, Main calls the function program. Otherwise it runs
// the tests.
func Main(m *testing.M, program func()) {
	if os.Getenv(variable) != "" {
		program()
		return
	}
	os.Exit(m.Run())
}

// Execute runs the program with the given arguments. It adds the variables in environment to this process's variables.
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
	Want      string // a part of what it prints to stderr
}

// Refuses runs the program with each command line in refusals, and checks the exit status and the message. The keys of
// refusals are names of subtests.
func Refuses(t *testing.T, refusals map[string]Refusal) {
	t.Helper()
	for name, r := range refusals {
		status, _, stderr := Execute(t, nil, r.Arguments...)
		assert.Equal(t, r.Status, status, name)
		assert.Contains(t, stderr, r.Want, name)
	}
}
