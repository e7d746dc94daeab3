package document

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const text = "# A `b`, and c\n\n" +
	"See [here](one.md#a-b-and-c), [there](https://example.com/) and `[not](this.md)`. Run `make\ncheck`.\n\n" +
	"```sh\nmake run\n```\n\n" +
	"It prints:\n\n" +
	"    # done\n" +
	"      [twice](no.md)\n\n" +
	"## Words\n\n<img src=\"images/two.png\">\n\n## Words\n\n" +
	"```go\npackage main\n```\n\nNothing else.\n\n    make test\n"

func TestExamples(t *testing.T) {
	assert.Equal(t, []Example{{"make run\n", "# done\n  [twice](no.md)"}}, Examples(text, "sh"))
	assert.Equal(t, []Example{{"package main\n", ""}}, Examples(text, "go"))
	assert.Empty(t, Examples(text, "yaml"))
}

func TestCode(t *testing.T) {
	code := Code(text)
	for _, line := range []string{"make run", "make check", "make test", "package main", "[not](this.md)"} {
		assert.Contains(t, code, line)
	}
	assert.NotContains(t, code, "Nothing else.")
}

func TestLinksAndAnchors(t *testing.T) {
	assert.Equal(t, []string{"one.md#a-b-and-c", "no.md", "images/two.png"}, Links(text))
	assert.Equal(t, []string{"a-b-and-c", "words", "words-1"}, Anchors(text))
}

func TestRead(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs", "more"), 0o700))
	for _, name := range []string{"README.md", "docs/more/b.md", "docs/picture.svg", "other.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte("# "+name), 0o600))
	}
	texts, err := Read(root)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"README.md": "# README.md", "docs/more/b.md": "# docs/more/b.md"}, texts)

	_, err = Read(filepath.Join(root, "docs"))
	assert.Error(t, err, "a folder without docs")
}
