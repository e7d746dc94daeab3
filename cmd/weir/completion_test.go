package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inShell runs a script in a shell in which weir is the given program. If there is no such shell, it skips the test.
func inShell(t *testing.T, program, shell string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("there is no %s on the PATH to complete commands in", shell)
	}
	c := exec.CommandContext(t.Context(), path, args...)
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir())
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// TestCompletionInShells: after a shell has run the code that weir prints, it completes the commands and flags of weir.
func TestCompletionInShells(t *testing.T) {
	program := build(t)
	t.Run("bash", func(t *testing.T) {
		// At Tab, bash runs the command after -C with the line so far.
		out := inShell(t, program, "bash", "--norc", "-c", `source <(weir completion -c bash)
			asked=$(complete -p weir) && asked=${asked##* -C } && asked=${asked% weir}
			for line in "weir he" "weir serve --algo"; do export COMP_LINE=$line COMP_POINT=${#line}; eval "$asked"; done`)
		assert.Equal(t, []string{"health", "--algorithm"}, strings.Fields(out))
	})
	t.Run("zsh", func(t *testing.T) {
		out := inShell(t, program, "zsh", "-f", "-c",
			`autoload -U compinit && compinit -u -D; source <(weir completion -c zsh); print -r -- $_comps[weir]`)
		assert.Contains(t, out, "-C "+program)
	})
	t.Run("fish", func(t *testing.T) {
		out := inShell(t, program, "fish", "-N", "-c", `weir completion -c fish | source; complete -C 'weir he'; complete -C 'weir serve --algo'`)
		assert.Equal(t, []string{"health", "--algorithm"}, strings.Fields(out))
	})
}

// TestPackagedCompletion: with the files of the packages, each shell knows how to complete weir's commands.
func TestPackagedCompletion(t *testing.T) {
	program := build(t)
	folder, err := filepath.Abs(inTree("packaging", "completion"))
	require.NoError(t, err)
	t.Run("bash", func(t *testing.T) {
		assert.Contains(t, inShell(t, program, "bash", "--norc", "-c", "source "+folder+"/weir.bash; complete -p weir"), "-C 'weir' weir")
	})
	t.Run("zsh", func(t *testing.T) {
		out := inShell(t, program, "zsh", "-f", "-c", "fpath=("+folder+" $fpath); autoload -U compinit && compinit -u -D; print -r -- $_comps[weir]")
		assert.Equal(t, "_weir\n", out)
	})
	t.Run("fish", func(t *testing.T) {
		out := inShell(t, program, "fish", "-N", "-c", "source "+folder+"/weir.fish; complete -C 'weir he'; complete -C 'weir serve --algo'")
		assert.Equal(t, []string{"health", "--algorithm"}, strings.Fields(out))
	})
}

// TestCompletionKnowsEveryCommand: every command of the help can be completed.
func TestCompletionKnowsEveryCommand(t *testing.T) {
	program := build(t)
	help := run(t, program, "", "--help").stdout
	_, help, found := strings.Cut(help, "\nCommands:\n")
	require.True(t, found)
	help, _, _ = strings.Cut(help, "\nFlags:\n")
	var commands []string
	for line := range strings.Lines(help) {
		if strings.HasPrefix(line, "  ") && line[2] != ' ' {
			commands = append(commands, strings.Fields(line)[0])
		}
	}
	require.Contains(t, commands, "serve")
	t.Setenv("COMP_LINE", "weir ")
	assert.Subset(t, strings.Fields(run(t, program, "").stdout), commands)
}
