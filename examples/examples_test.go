// Package examples has the tests of those examples that are scripts.
package examples

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

// TestScripts runs the run.sh of each example. A client has its five requests, whatever it writes about its address.
func TestScripts(t *testing.T) {
	weir := exampletest.Weir(t, ".")
	for example, bare := range map[string][]int{
		"nginx": nil, "haproxy": nil,
		"caddy": {200}, "traefik": {200}, // these hand on what weir says of a request that it admits to the server behind
	} {
		t.Run(example, func(t *testing.T) {
			exampletest.Need(t, example)
			exampletest.Request{
				Law: exampletest.Law{Burst: 5, Every: 6 * time.Second}, Method: "GET", Path: "/", Limit: "clients", Status: 200, Bare: bare,
			}.Forged(t, exampletest.Script(t, example, weir))
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
		// Of seven takes more than five pass only if six seconds do meanwhile.
		assert.Regexp(t, `^(allowed\n){5}(allowed\n|refused, again in [1-6]s\n){2}$`, exampletest.Output(t, "redisdoor", weir))
	})
}
