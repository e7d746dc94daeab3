package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fileName matches a file name of some extensions with the path before it. If a comment names a file with such an
// extension, the file must be in the repository.
var fileName = regexp.MustCompile(`[\w./-]*\w\.(?:go|md|lua|pml)\b`)

// TestFilesThatCommentsNameExist: for each file that a comment in Go code names, the repository has a file whose path
// ends in this name. Web addresses are ignored.
func TestFilesThatCommentsNameExist(t *testing.T) {
	var sources []string
	exists := map[string]bool{} // the paths of all files, and all ends of these paths
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		path = filepath.ToSlash(path)
		if filepath.Ext(path) == ".go" {
			sources = append(sources, path)
		}
		for end, more := strings.TrimPrefix(path, "../"), true; more; _, end, more = strings.Cut(end, "/") {
			exists[end] = true
		}
		return nil
	}))
	named := 0
	for _, path := range sources {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.Split(string(source), "\n")
		for _, i := range commentLines(source) {
			_, comment, _ := strings.Cut(lines[i], "//")
			if strings.Contains(comment, "://") {
				continue
			}
			for _, name := range fileName.FindAllString(comment, -1) {
				named++
				assert.True(t, exists[strings.TrimLeft(name, "./")], "%s:%d: there is no %s", path[3:], i+1, name)
			}
		}
	}
	assert.Greater(t, named, 50)
}
