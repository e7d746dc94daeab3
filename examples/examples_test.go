package examples

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

// TestScripts runs the run.sh of each example. A client gets only its requests, whichever address it claims to have.
func TestScripts(t *testing.T) {
	weir := exampletest.Weir(t, ".")
	works := map[string][]string{"caddy": {"adapt", "--adapter", "caddyfile", "--config", "caddy/Caddyfile"}}
	for example, bare := range map[string][]int{
		"nginx": nil, "haproxy": nil,
		// These proxies do not pass the RateLimit fields of an admission to the client.
		"caddy": {200}, "traefik": {200},
	} {
		t.Run(example, func(t *testing.T) {
			exampletest.Need(t, example, works[example]...)
			law := exampletest.Law{Burst: 5, Every: 6 * time.Second}
			exampletest.Request{Law: law, Method: "GET", Path: "/", Limit: "clients", Status: 200, Bare: bare}.
				Forged(t, exampletest.Script(t, example, weir))
			exampletest.README(t, example+"/README.md", "127.0.0.1:8000", law, func() string { return exampletest.Script(t, example, weir) })
		})
	}
	t.Run("no rules", func(t *testing.T) {
		cmd := exec.Command("./with-weir", "missing.yaml", "true")
		cmd.Env = append(cmd.Environ(), "WEIR="+weir)
		out, err := cmd.CombinedOutput()
		assert.Error(t, err, "a weir that cannot start")
		assert.Contains(t, string(out), "there is no file missing.yaml")
	})
	t.Run("redisdoor", func(t *testing.T) {
		// More than five of seven tokens are available only if six seconds pass during the script.
		assert.Regexp(t, `^(allowed\n){5}(allowed\n|refused, again in [1-6]s\n){2}$`, exampletest.Output(t, "redisdoor", weir))
	})
}

// TestEveryExampleIsListed: README.md has a row for each folder, with the command of the folder's README.md.
func TestEveryExampleIsListed(t *testing.T) {
	list, err := os.ReadFile("README.md")
	require.NoError(t, err)
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	listed := 0
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || name == "internal" {
			continue
		}
		command := "go run ./" + name
		if _, err := os.Stat(name + "/run.sh"); err == nil {
			command = "./" + name + "/run.sh"
		}
		assert.Regexp(t, `(?m)^\| \[`+name+`\]\(`+name+`/README\.md\) \| .* \| `+"`"+regexp.QuoteMeta(command)+"` \\|$", string(list))
		text, err := os.ReadFile(name + "/README.md")
		if assert.NoError(t, err) {
			assert.Contains(t, string(text), "```sh\n"+command+"\n```\n")
		}
		listed++
	}
	assert.Greater(t, listed, 10)
}
