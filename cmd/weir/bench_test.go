//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const script = `#!/bin/sh
echo "$0"
for a; do echo "<$a>"; done
echo trouble >&2
exit 7
`

func TestProgramRunsBench(t *testing.T) {
	built := build(t)
	text, err := os.ReadFile(built)
	require.NoError(t, err)
	home, other := t.TempDir(), t.TempDir()
	program := filepath.Join(home, "weir")
	require.NoError(t, os.WriteFile(program, text, 0o700))
	t.Setenv("PATH", other+":/usr/bin:/bin")

	missing := run(t, program, "", "bench", "--quick")
	assert.Equal(t, 1, missing.status)
	assert.Contains(t, missing.stderr, "there is no weir-bench next to weir or on the PATH: `make build` makes it, or go install github.com/weir-go/weir/bench/cmd/weir-bench@latest")

	install := func(folder string) string {
		path := filepath.Join(folder, benchProgram)
		require.NoError(t, os.WriteFile(path, []byte(script), 0o700))
		return path
	}
	onPath := install(other)
	assert.Equal(t, result{7, onPath + "\n", "trouble\n"}, run(t, program, "", "bench"), "found on the PATH, exit status and all")

	beside := install(home)
	got := run(t, program, "", "bench", "--rows", "a b", "--json=x", "--", "-q", "--help")
	assert.Equal(t, result{7, beside + "\n<--rows>\n<a b>\n<--json=x>\n<-->\n<-q>\n<--help>\n", "trouble\n"}, got, "beside weir first, arguments as they are")

	assert.Equal(t, result{7, beside + "\n<--help>\n", "trouble\n"}, run(t, program, "", "bench", "--help"), "the help is that of the program")

	require.NoError(t, os.Chmod(beside, 0o600))
	assert.Equal(t, onPath+"\n", run(t, program, "", "bench").stdout, "what cannot be run is passed over")
}
