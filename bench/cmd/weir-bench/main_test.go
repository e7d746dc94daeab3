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
)

// asProgram makes the test's own program be weir-bench, so that nothing needs to be built.
const asProgram = "WEIR_BENCH_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func execute(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestProgramMeasuresAndReports(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "run.json")
	status, measured, stderr := execute(t, "--quick", "--rounds", "1", "--rows", "allowed-1k,memory", "--json", file)
	require.Equal(t, 0, status, stderr)
	assert.Regexp(t, `^1 rounds, \d+ processes, about \d+s\n$`, stderr, "no bar where nobody looks")
	assert.Contains(t, measured, "allowed, 1,000 keys (allowed-1k), GOMAXPROCS 1")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.True(t, json.Valid(text))

	page := filepath.Join(folder, "page.html")
	status, again, stderr := execute(t, "--from", file, "--html", page, "--svg", folder)
	require.Equal(t, 0, status, stderr)
	assert.Empty(t, stderr)
	assert.Equal(t, measured, again, "the same report, without measuring")
	for _, name := range []string{page, filepath.Join(folder, "bench-speed.svg"), filepath.Join(folder, "bench-memory.svg")} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Contains(t, string(text), "</svg>")
	}
}

func TestProgramRefusesBadInput(t *testing.T) {
	folder := t.TempDir()
	bad := filepath.Join(folder, "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{"format":7}`), 0o600))
	for name, c := range map[string]struct {
		args   string
		status int
		want   string
	}{
		"unknown row":      {"--rows churm", 80, `row "churm": want one of allowed-1,`},
		"half a name":      {"--rows zipf", 80, "did you mean zipf-1m?"},
		"rounds":           {"--rounds=-1", 80, "-1 rounds: want 1 to 1000"},
		"both efforts":     {"--quick --full", 80, "--quick and --full can't be used together"},
		"from and measure": {"--from x.json --quick", 80, "--from measures nothing"},
		"unknown flag":     {"--fast", 80, "unknown flag --fast"},
		"missing file":     {"--from " + folder + "/missing.json", 1, "no such file"},
		"another format":   {"--from " + bad, 1, "bad.json: format 7 of a run: want 1"},
	} {
		status, _, stderr := execute(t, strings.Fields(c.args)...)
		assert.Equal(t, c.status, status, name)
		assert.Contains(t, stderr, c.want, name)
	}
}
