// Package docs has tests that check the documents: links, commands, the output of programs, and what the architecture
// page says about the code. Tests in cmd/weir run the commands of the documents.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/document"
)

func documents(t *testing.T) map[string]string {
	t.Helper()
	texts, err := document.Read("..")
	require.NoError(t, err)
	return texts
}

// TestLinksResolve checks that every link of the documents leads to a file. If the link names a heading, the file must
// have the heading.
func TestLinksResolve(t *testing.T) {
	texts := documents(t)
	followed := 0
	for name, text := range texts {
		for _, target := range document.Links(text) {
			file, anchor, _ := strings.Cut(target, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			_, err := os.Stat("../" + to)
			if assert.NoError(t, err, "%s links to %s", name, target) && anchor != "" {
				assert.Contains(t, document.Anchors(texts[to]), anchor, "%s links to %s", name, target)
			}
			followed++
		}
	}
	assert.Greater(t, followed, 50)
}

// TestMakeTargetsExist checks that the Makefile has every target that a document names in a code span or block.
func TestMakeTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9][a-z0-9 -]*):`).FindAllStringSubmatch(string(makefile), -1) {
		for _, target := range strings.Fields(m[1]) {
			targets[target] = true
		}
	}
	command := regexp.MustCompile(`^(?:[A-Z]+=\S* )*make((?: [a-z0-9-]+)*)`)
	named := map[string]bool{}
	for name, text := range documents(t) {
		for _, line := range document.Code(text) {
			if m := command.FindStringSubmatch(line); m != nil {
				for _, target := range strings.Fields(m[1]) {
					assert.True(t, targets[target], "%s: %q: the Makefile has no target %s", name, line, target)
					named[target] = true
				}
			}
		}
	}
	for _, target := range []string{"run", "test", "check", "bench", "explore"} {
		assert.True(t, named[target], "no document names %s: are they still read?", target)
	}
}

// TestDecisionsAreListed checks that docs/decisions lists every record, with its number and title.
func TestDecisionsAreListed(t *testing.T) {
	texts := documents(t)
	numbers := map[string]string{}
	for name, text := range texts {
		file := path.Base(name)
		if path.Dir(name) != "docs/decisions" || file == "README.md" {
			continue
		}
		m := regexp.MustCompile(`^# (\d+)\. (.*)\n`).FindStringSubmatch(text)
		if !assert.Len(t, m, 3, "%s: want a title such as # 1. Title", name) {
			continue
		}
		assert.Empty(t, numbers[m[1]], "%s has the same number", name)
		numbers[m[1]] = name
		assert.True(t, strings.HasPrefix(file, fmt.Sprintf("%04s-", m[1])), "%s: number %s", name, m[1])
		assert.Contains(t, strings.Split(texts["docs/decisions/README.md"], "\n"), fmt.Sprintf("| [%s](%s) | %s |", m[1], file, m[2]))
	}
	assert.NotEmpty(t, numbers)
}

// TestNamedTestsExist checks that the repository has every test and Go file that a document names in a code span.
func TestNamedTestsExist(t *testing.T) {
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		there[entry.Name()] = true
		source, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(source), -1) {
			there[m[1]] = true
		}
		return err
	}))
	named := 0
	for name, text := range documents(t) {
		for _, code := range document.Code(text) {
			for _, m := range regexp.MustCompile(`^(?:(?:Test|Fuzz|Benchmark)[A-Z]\w+|\w+\.go)$`).FindAllString(code, -1) {
				assert.True(t, there[m], "%s names %s", name, m)
				named++
			}
		}
	}
	assert.Greater(t, named, 20)
}

// Markdown treats text directly behind a table as a row. So there must be a blank line between the table and the text.
func TestNoTextIsARowOfATable(t *testing.T) {
	for name, text := range documents(t) {
		inCode, before := false, ""
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "```") {
				inCode = !inCode
			}
			if !inCode && strings.HasPrefix(before, "|") {
				assert.True(t, line == "" || strings.HasPrefix(line, "|"), "%s:%d: want a blank line behind the table", name, i+1)
			}
			before = line
		}
	}
}
