package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/examples/internal/exampletest"
	"github.com/weir-go/weir/internal/document"
	"github.com/weir-go/weir/internal/freeport"
)

// TestTokensPerTeam runs the commands of docs/team-tokens.md in order. It replaces the ports. It also replaces the
// first command, which names the reader's API and model. It leaves out the build.
func TestTokensPerTeam(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl on this machine: the commands were not run")
	}
	text, err := os.ReadFile("../../docs/team-tokens.md")
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "bin"), 0o755))
	require.NoError(t, os.Rename(exampletest.Weir(t, ".."), filepath.Join(folder, "bin", "weir")))
	model := httptest.NewServer(handler())
	t.Cleanup(model.Close)

	examples := document.Examples(string(text), "sh")
	require.Len(t, examples, 5)
	assert.Equal(t, "API=http://127.0.0.1:11434 MODEL=llama3.2\n", examples[0].Code)
	script := "trap 'kill $!' EXIT\nAPI=" + model.URL + " MODEL=tiny\n"
	for _, e := range examples[1:] {
		script += strings.Replace(e.Code, "make build-weir\n", "", 1) + "echo ---\n"
	}
	for _, port := range []string{":8000", ":8081"} {
		script = strings.ReplaceAll(script, "127.0.0.1"+port, freeport.Address(t))
	}
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = folder
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	parts := strings.Split(string(out), "---\n")
	require.Len(t, parts, 5, "%s", out)
	assert.Contains(t, parts[0], "tokens.yaml is good")
	assert.Contains(t, parts[0], "bound   in any time T a key's requests cost at most 3000 + 3000/h * T")

	assert.Equal(t, 6, len(regexp.MustCompile(`  (200|429)\n`).FindAllString(parts[2], -1)), parts[2])
	answers := regexp.MustCompile(`"completion_tokens":(\d+)`).FindAllStringSubmatch(parts[2], -1)
	require.GreaterOrEqual(t, len(answers), 4)
	assert.Equal(t, "900", answers[2][1])
	assert.NotEqual(t, "900", answers[3][1], "cut to what is left")
	assert.Contains(t, parts[2], "Rate limit tokens-per-hour reached: limit 3000, ")
	assert.Contains(t, parts[2], "  429\n")
	assert.Regexp(t, `(?i)X-Ratelimit-Remaining-Tokens: 29\d\d`, parts[3])
}
