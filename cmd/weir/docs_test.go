package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests keep the documents of the repository true: what they link to, which commands they name, and,
// in docs_run_test.go, what their programs and commands print.

// root is the directory of the repository.
const root = "../.."

// documents returns the text of every Markdown file by its path from the root: those at the top and those in docs.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(root + "/*.md")
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(root+"/docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	}))
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		texts[filepath.ToSlash(name)] = string(text)
	}
	require.NotEmpty(t, texts["README.md"], "is it elsewhere now?")
	require.NotEmpty(t, texts["docs/architecture.md"], "is it elsewhere now?")
	return texts
}

var (
	fenced   = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	indented = regexp.MustCompile(`(?m)^    .*$`)
	span     = regexp.MustCompile("`[^`]+`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	command  = regexp.MustCompile(`^(?:[A-Z]+=\S* )*make((?: [a-z0-9-]+)*)`)
)

// TestLinksResolve follows every relative link of the documents to a file and, if it names one, a heading there.
func TestLinksResolve(t *testing.T) {
	texts := documents(t)
	links := 0
	for name, text := range texts {
		prose := span.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			target := m[1] + m[2]
			if strings.Contains(target, "://") {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(target, "#")
			to := name
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
			}
			if _, err := os.Stat(filepath.Join(root, to)); !assert.NoError(t, err, "%s links to %s", name, target) || anchor == "" {
				continue
			}
			assert.Contains(t, anchors(texts[to]), anchor, "%s links to %s: the headings of %s", name, target, to)
		}
	}
	assert.Greater(t, links, 50)
}

// anchors returns the names that GitHub gives to the headings of a document.
func anchors(text string) []string {
	var names []string
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, m[1])
		if n := seen[name]; n > 0 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		seen[name]++
		names = append(names, name)
	}
	return names
}

// TestMakeTargetsExist finds every target that a document names, in its code, in the Makefile.
func TestMakeTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile(root + "/Makefile")
	require.NoError(t, err)
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9][a-z0-9 -]*):`).FindAllStringSubmatch(string(makefile), -1) {
		for _, target := range strings.Fields(m[1]) {
			targets[target] = true
		}
	}
	named := map[string]bool{}
	for name, text := range documents(t) {
		for _, line := range code(text) {
			m := command.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			for _, target := range strings.Fields(m[1]) {
				assert.True(t, targets[target], "%s: %q: the Makefile has no target %s", name, line, target)
				named[target] = true
			}
		}
	}
	for _, target := range []string{"run", "test", "check", "bench", "explore"} {
		assert.True(t, named[target], "no document names %s: are they still read?", target)
	}
}

// code returns the code of a document: lines of blocks, and spans, which may go over the end of a line.
func code(text string) []string {
	var lines []string
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		lines = append(lines, strings.Split(block[2], "\n")...)
	}
	text = fenced.ReplaceAllString(text, "")
	for _, line := range indented.FindAllString(text, -1) {
		lines = append(lines, strings.TrimSpace(line))
	}
	for _, s := range span.FindAllString(text, -1) {
		lines = append(lines, strings.Join(strings.Fields(strings.Trim(s, "`")), " "))
	}
	return lines
}
