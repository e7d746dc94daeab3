package program_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/caddylimit/internal/testprogram"
	"github.com/weir-go/weir/internal/document"
)

// documented returns the directives of the first Caddyfile in docs/caddy.md.
func documented(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/caddy.md")
	require.NoError(t, err)
	examples := document.Examples(string(text), "sh")
	require.NotEmpty(t, examples)
	lines := strings.Split(strings.TrimSpace(examples[0].Code), "\n")
	require.Len(t, lines, 5)
	assert.Contains(t, lines[0], "cd caddylimit && CGO_ENABLED=0 go build -o ../bin/caddy/caddy ./cmd/caddy")
	var words []string
	for _, word := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(lines[1], -1) {
		words = append(words, word[1])
	}
	require.Equal(t, []string{`%s\n`, ":8080"}, words[:2])
	return strings.Join(words[2:], "\n")
}

func (c *caddy) answers(n int) (statuses []int) {
	for range n {
		answer, err := http.Get("http://" + c.site + "/")
		for again := 0; again < 5 && testprogram.IsClosed(err); again++ {
			answer, err = http.Get("http://" + c.site + "/")
		}
		require.NoError(c.t, err)
		require.NoError(c.t, answer.Body.Close())
		statuses = append(statuses, answer.StatusCode)
	}
	return statuses
}
