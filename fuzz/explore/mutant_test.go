//go:build explore

package explore

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

// TestMutants builds the explorer with every mutant of the protocol in place of the code
// and requires that the scenario named beside the mutant breaks the invariant named
// there. A mutant is made by the build's overlay, so the code itself knows nothing of
// mutants: production builds hold no trace of them because there is none to hold.
func TestMutants(t *testing.T) {
	broken := regexp.MustCompile(`broken: (([IR]\d+): .*)`)
	for _, m := range mutants {
		t.Run(m.rule+" "+m.name, func(t *testing.T) {
			t.Parallel()
			binary := build(t, m.overlay(t))
			run := "^TestScenarios$/^" + regexp.QuoteMeta(strings.ReplaceAll(m.scenario, " ", "_")) + "$"
			out, err := exec.CommandContext(t.Context(), binary, "-test.v", "-large", "-test.run", run).CombinedOutput()
			require.Error(t, err, "the mutant survives:\n%s", out)
			caught := broken.FindStringSubmatch(string(out))
			require.NotNil(t, caught, "no invariant was broken:\n%s", out)
			require.Equal(t, m.invariant, caught[2], "%s", out)
			t.Logf("caught: %s %-60s %s", m.rule, m.name, caught[1])
		})
	}
}

// build builds the explorer, with the files of overlay in place of the real ones.
func build(t *testing.T, overlay map[string]string) string {
	dir := t.TempDir()
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "explore.test")
	require.NoError(t, os.WriteFile(list, replace, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "explore", "-overlay", list, "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// overlay patches copies of the files that the mutant changes. An edit must fit in
// exactly one place, so a mutant that the code has moved away from fails.
func (m mutant) overlay(t *testing.T) map[string]string {
	sources := map[string]string{}
	for _, e := range m.edits {
		file, err := filepath.Abs(filepath.Join("..", "..", e.file))
		require.NoError(t, err)
		if sources[file] == "" {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			sources[file] = string(source)
		}
		require.Equal(t, 1, strings.Count(sources[file], e.old), "%s must contain once:\n%s", e.file, e.old)
		sources[file] = strings.Replace(sources[file], e.old, e.new, 1)
	}
	dir, overlay := t.TempDir(), map[string]string{}
	for file, source := range sources {
		overlay[file] = filepath.Join(dir, filepath.Base(file))
		require.NoError(t, os.WriteFile(overlay[file], []byte(source), 0o600))
	}
	return overlay
}
