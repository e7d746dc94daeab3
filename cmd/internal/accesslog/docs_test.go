package accesslog

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/document"
)

// TestTheDocumentNamesEveryFormat: the table of docs/program.md has exactly one row for each format.
func TestTheDocumentNamesEveryFormat(t *testing.T) {
	texts, err := document.Read("../../..")
	require.NoError(t, err)
	table := regexp.MustCompile("(?s)\\| `--format` \\| written by .*?\n\n").FindString(texts["docs/program.md"])
	require.NotEmpty(t, table)
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		named = append(named, row[1])
	}
	assert.ElementsMatch(t, Formats(), named)
}
