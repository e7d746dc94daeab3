package reference

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestVariablesOfReference: weir-envoy knows every variable that envoyproxy/ratelimit's settings read.
func TestVariablesOfReference(t *testing.T) {
	settings, err := os.ReadFile(filepath.Join(checkout(t), "src", "settings", "settings.go"))
	require.NoError(t, err)
	table, err := exec.Command(weirEnvoy(t), "variables").Output()
	require.NoError(t, err)
	known := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		known[strings.Fields(line)[0]] = true
	}
	names := regexp.MustCompile("envconfig:\"([A-Z_]+)\"").FindAllStringSubmatch(string(settings), -1)
	assert.Greater(t, len(names), 100)
	for _, name := range names {
		assert.True(t, known[name[1]], name[1])
	}
}
