//go:build explore

package explore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEditsFit(t *testing.T) {
	for _, m := range mutants {
		src := map[string]string{}
		found := false
		for _, s := range scenarios {
			found = found || s.name == m.Scenario
		}
		if !found {
			t.Errorf("no scenario %q", m.Scenario)
		}
		for _, e := range m.Edits {
			if src[e.File] == "" {
				b, _ := os.ReadFile(filepath.Join("../..", e.File))
				src[e.File] = string(b)
			}
			if n := strings.Count(src[e.File], e.Old); n != 1 {
				t.Errorf("%s %s: %s contains %d times %q", m.Rule, m.Name, e.File, n, e.Old)
			}
			src[e.File] = strings.Replace(src[e.File], e.Old, e.New, 1)
		}
	}
}
