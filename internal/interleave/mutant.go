//go:build explore

package interleave

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Mutant is the code with one broken rule, made by edits of its text. (Mutant and Edit are aliases of unnamed types,
// because lists of mutants are easier to read without the names of the fields.)
type Mutant = struct {
	Rule, Name string
	Scenario   string // the scenario that catches the mutant, or the name of another test
	Invariant  string // the invariant that the mutant breaks in the scenario
	Edits      []Edit
}

// An Edit replaces Old with New in a file. The file must contain Old exactly once.
type Edit = struct{ File, Old, New string }

// Catch requires, for each mutant, that the mutant's scenario breaks the mutant's invariant. The scenario is one of
// TestScenarios, which call [Test], or another test that reports the broken invariant in the same form. If a scenario
// runs for ten minutes, the mutant counts as not caught.
//
// Catch builds the test of the package in the working directory, with the mutant instead of the code. It uses the
// overlay of the go command, so production code contains nothing for mutants. The names of files are relative to root.
func Catch(t *testing.T, root string, mutants []Mutant) {
	broken := regexp.MustCompile(`broken: (([A-Z]\d+|\([a-d]\)): .*)`)
	for _, m := range mutants {
		t.Run(m.Rule+" "+m.Name, func(t *testing.T) {
			t.Parallel()
			binary := build(t, overlay(t, root, m))
			run := "^TestScenarios$/^" + regexp.QuoteMeta(strings.ReplaceAll(m.Scenario, " ", "_")) + "$"
			if strings.HasPrefix(m.Scenario, "Test") {
				run = "^" + m.Scenario + "$"
			}
			out, err := exec.CommandContext(t.Context(), binary, "-test.v", "-test.timeout", "10m", "-large", "-endless", "-test.run", run).CombinedOutput()
			require.Error(t, err, "the mutant survives:\n%s", out)
			caught := broken.FindStringSubmatch(string(out))
			require.NotNil(t, caught, "no invariant was broken:\n%s", out)
			require.Equal(t, m.Invariant, caught[2], "%s", out)
			t.Logf("caught: %s %-60s %s", m.Rule, m.Name, caught[1])
		})
	}
}

// build builds the test with the files of the map overlay instead of the real files.
func build(t *testing.T, overlay map[string]string) string {
	dir := t.TempDir()
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "explore.test")
	require.NoError(t, os.WriteFile(list, replace, 0o600))
	// The build takes longer than the test. So it leaves out debug information and vet.
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-gcflags=-dwarf=false", "-ldflags=-s -w",
		"-tags=explore", "-overlay", list, "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// overlay patches copies of the files that the mutant changes. An edit must match in exactly one place. So if the
// quoted code has changed, the test of the mutant fails.
func overlay(t *testing.T, root string, m Mutant) map[string]string {
	sources := map[string]string{}
	for _, e := range m.Edits {
		file, err := filepath.Abs(filepath.Join(root, e.File))
		require.NoError(t, err)
		if sources[file] == "" {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			sources[file] = string(source)
		}
		require.Equal(t, 1, strings.Count(sources[file], e.Old), "%s must contain once:\n%s", e.File, e.Old)
		sources[file] = strings.Replace(sources[file], e.Old, e.New, 1)
	}
	dir, overlay := t.TempDir(), map[string]string{}
	for file, source := range sources {
		overlay[file] = filepath.Join(dir, filepath.Base(file))
		require.NoError(t, os.WriteFile(overlay[file], []byte(source), 0o600))
	}
	return overlay
}
