package docs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/document"
)

// TestConfigurationsAreThoseOfTheExamples: operations.md shows each configuration of the folder examples exactly once,
// unchanged.
func TestConfigurationsAreThoseOfTheExamples(t *testing.T) {
	text := documents(t)["docs/operations.md"]
	for file, language := range map[string]string{
		"decide.yaml": "yaml", "haproxy/weir.yaml": "yaml", "nginx/auth_request.conf": "nginx", "haproxy/weir.cfg": "haproxy",
		"caddy/weir.caddy": "caddy", "traefik/dynamic/weir.yaml": "yaml",
	} {
		want, err := os.ReadFile("../examples/" + file)
		require.NoError(t, err)
		shown := 0
		for _, e := range document.Examples(text, language) {
			if e.Code == string(want) {
				shown++
			}
		}
		assert.Equal(t, 1, shown, "docs/operations.md and examples/%s", file)
	}
}
