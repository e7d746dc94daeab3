package docs

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoCommentIsWiderThan120Columns measures all comments in Go code, with four columns for a tab. Directives,
// generated files, and code without a comment on the same line are not measured.
func TestNoCommentIsWiderThan120Columns(t *testing.T) {
	const widest = 120
	files := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path == filepath.Join("..", "bin") { // what was built, such as a site
			return filepath.SkipDir
		}
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(source), "\n// Code generated ") {
			return nil
		}
		files++
		lines := strings.Split(string(source), "\n")
		for _, i := range commentLines(source) {
			n := utf8.RuneCountInString(strings.ReplaceAll(lines[i], "\t", "    "))
			if n > widest {
				t.Errorf("%s:%d: a comment that ends at column %d: want %d at most", filepath.ToSlash(path[3:]), i+1, n, widest)
			}
		}
		return nil
	}))
	assert.Greater(t, files, 300)
}

// commentLines returns the indexes of a Go file's lines with comments other than directives.
func commentLines(source []byte) (indexes []int) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, nil, scanner.ScanComments)
	for {
		at, kind, text := s.Scan()
		if kind == token.EOF {
			return indexes
		}
		if kind != token.COMMENT || strings.HasPrefix(text, "//go:") {
			continue
		}
		first := file.Line(at) - 1
		for i := range strings.Count(text, "\n") + 1 {
			indexes = append(indexes, first+i)
		}
	}
}
