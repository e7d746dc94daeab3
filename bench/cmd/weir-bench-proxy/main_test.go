package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/proxy"
	"github.com/weir-go/weir/bench/proxy/server"
)

// asProgram makes the test's own program be weir-bench-proxy, so that nothing needs to be built.
const asProgram = "WEIR_BENCH_PROXY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func execute(t *testing.T, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// TestProgramMeasures measures for one second each, and leaves neither processes nor files. How fast they
// were is not looked at.
func TestProgramMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some twenty seconds")
	}
	for _, p := range []server.Program{server.Wrk, server.Nginx().Program, server.HAProxy().Program} {
		if _, err := p.Find(); err != nil {
			t.Skip(err)
		}
	}
	weir := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", weir, ".")
	build.Dir = "../../../cmd/weir"
	build.Env = append(os.Environ(), "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	temp, file := t.TempDir(), filepath.Join(t.TempDir(), "run.json")
	status, stdout, stderr := execute(t, []string{"TMPDIR=" + temp}, "--rounds", "1", "--seconds", "1", "--weir", weir, "--json", file)
	require.Equal(t, 0, status, stderr)
	assert.Contains(t, stderr, "round 1 of 1: nginx limit_req, refuse")
	for _, name := range []string{"weir", "weir, headers: none", "nginx limit_req", "HAProxy stick table"} {
		assert.Contains(t, stdout, "\n"+name+" ")
	}
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var run proxy.Run
	require.NoError(t, json.Unmarshal(text, &run))
	require.Len(t, run.Rows, 11)
	assert.Len(t, run.Versions, 4)
	for _, row := range run.Rows {
		require.Len(t, row.Rounds, 1)
		assert.Positive(t, row.Rounds[0].CPU, "%s, %s", row.Server.Name, row.Mode)
		assert.Positive(t, row.Rounds[0].P99)
	}
}

func TestProgramRefusesBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		args   string
		status int
		want   string
	}{
		"rounds":       {"--rounds 0", 80, "0 rounds: want 1 to 1000"},
		"seconds":      {"--seconds=-1", 80, "-1 seconds: want 1 to 30"},
		"unknown flag": {"--fast", 80, "unknown flag --fast"},
		"no weir":      {"--weir /no/such/weir", 1, "/no/such/weir is missing: build it with make build"},
	} {
		status, _, stderr := execute(t, nil, strings.Fields(c.args)...)
		assert.Equal(t, c.status, status, name)
		assert.Contains(t, stderr, c.want, name)
	}
}
