package docs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/conformance"
)

// TestConformancePage checks that conformance.md agrees with the cases and the list of gaps. With WEIR_WRITE=1 it
// writes the page.
func TestConformancePage(t *testing.T) {
	want, err := conformance.Page("`WEIR_WRITE=1 go test ./docs -run TestConformancePage`")
	require.NoError(t, err)
	if os.Getenv("WEIR_WRITE") == "1" {
		require.NoError(t, os.WriteFile("conformance.md", []byte(want), 0o644))
	}
	got, err := os.ReadFile("conformance.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "WEIR_WRITE=1 go test ./docs -run TestConformancePage writes the page")
}
