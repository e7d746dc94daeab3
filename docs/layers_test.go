package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLayers compares the imports of all files except tests with the table of architecture.md.
func TestLayers(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	require.NoError(t, err)
	said := map[string][]string{}
	name := regexp.MustCompile("`([^`]+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z/-]+)` \\| [^|]+ \\|([^|]*)\\|$").FindAllStringSubmatch(string(text), -1) {
		said[row[1]] = []string{}
		for _, imported := range name.FindAllStringSubmatch(row[2], -1) {
			said[row[1]] = append(said[row[1]], imported[1])
		}
	}
	require.NotEmpty(t, said)

	// part returns the part of the repository to which a folder belongs. The name of the folder begins with the name of
	// the part. If several names fit, the longest counts.
	part := func(folder string) (longest string) {
		for p := range said {
			if (folder == p || strings.HasPrefix(folder, p+"/")) && len(p) > len(longest) {
				longest = p
			}
		}
		return longest
	}
	seen := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path == filepath.Join("..", "bin") { // what was built, such as a site
			return filepath.SkipDir
		}
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel("..", filepath.Dir(path))
		if err != nil {
			return err
		}
		from := part(filepath.ToSlash(folder))
		assert.NotEmpty(t, from, "docs/architecture.md does not say what %s is", folder)
		seen[from] = true
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			inside, ours := strings.CutPrefix(imported, "github.com/weir-go/weir/")
			if to := part(inside); ours && to != from {
				assert.Contains(t, said[from], to, "%s imports %s: what docs/architecture.md allows to %s", path, imported, from)
			}
		}
		return nil
	}))
	for _, p := range []string{"atomicbucket", "shard", "engine", "httplimit", "httplimit/reading", "redislimit", "cmd/weir", "cmd/weir-envoy", "cmd/internal", "cmd/internal/envoy", "cmd/internal/listen", "cmd/internal/proxy", "bench", "fuzz", "docs", "internal"} {
		assert.True(t, seen[p], "%s: nothing was looked at", p)
	}
}
