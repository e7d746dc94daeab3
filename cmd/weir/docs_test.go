//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/document"
	"github.com/weir-go/weir/redislimit/sim"
)

// These tests run the commands of the documents. (Package docs has the other tests of the documents. Go's cache of test
// results does not notice that a file outside this module has changed, so `make test` runs these without it.)

// TestCommandsOfTheDocuments runs the commands that end by themselves in seconds. Where a document shows what they
// print, or the last lines of it, they print that.
func TestCommandsOfTheDocuments(t *testing.T) {
	finite := regexp.MustCompile(`^bin/weir (replay|check|sim|version)\b`)
	program := build(t)
	texts, err := document.Read("../..")
	require.NoError(t, err)
	ran := 0
	for name, text := range texts {
		for _, e := range document.Examples(text, "sh") {
			if !finite.MatchString(e.Code) {
				continue
			}
			cmd := exec.Command("bash", "-ec", strings.ReplaceAll(e.Code, "bin/weir", program))
			cmd.Dir = "../.."
			out, err := cmd.Output()
			require.NoError(t, err, "%s: %s", name, e.Code)
			assert.True(t, strings.HasSuffix(strings.TrimRight(string(out), "\n"), e.Output),
				"%s: %s\nsaid to print:\n%s\nprints:\n%s", name, e.Code, e.Output, out)
			ran++
		}
	}
	assert.Greater(t, ran, 3)
}

// TestRequestsOfTheREADME makes the README's requests to the server that `make run` starts. The limit is another, so
// that no token comes back meanwhile on a busy machine.
func TestRequestsOfTheREADME(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl on this machine: the README's requests were not made")
	}
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	require.Contains(t, string(makefile), "$(BIN)/weir serve --listen $(ADDRESS) --admin $(ADMIN) --limit 1/s --burst 5\n")
	require.Regexp(t, `(?m)^ADDRESS +:= 127\.0\.0\.1:8080$`, string(makefile))

	s := startProgram(t, "serve", "--listen", "127.0.0.1:0", "--admin", "none", "--limit", "1/h", "--burst", "5")
	url := s.until(`msg=listening url=(\S+) for=clients`)[0]
	texts, err := document.Read("../..")
	require.NoError(t, err)
	made := 0
	for _, e := range document.Examples(texts["README.md"], "sh") {
		if !strings.Contains(e.Code, "curl") {
			continue
		}
		require.Contains(t, e.Code, "http://127.0.0.1:8080/")
		out, err := exec.Command("bash", "-ec", strings.ReplaceAll(e.Code, "http://127.0.0.1:8080/", url)).Output()
		require.NoError(t, err)
		require.NotEmpty(t, e.Output)
		assert.Equal(t, e.Output, strings.TrimRight(string(out), " \n"), e.Code)
		made++
	}
	assert.Equal(t, 1, made)
}

// TestDocumentedTableOfTheSimulator: the table of distributed.md is what `weir sim` finds at each load.
func TestDocumentedTableOfTheSimulator(t *testing.T) {
	program := build(t)
	var table strings.Builder
	for _, load := range []string{"0.8", "2", "10"} {
		got := run(t, program, "", "sim", "--json", "--load", load)
		require.Equal(t, 0, got.status, got.stderr)
		var r sim.Report
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
		for _, o := range r.Results {
			held := "holds"
			if !o.Holds {
				held = "broken"
			}
			fmt.Fprintf(&table, "| %sx | %s | %s | %.3f %% | %.1f | %.1f | %.0f %s |\n", load, o.Title,
				percent(o.FirstOfLimit), 100*o.RefusedShare, o.FirstAsked, o.Worst, o.WorstBound, held)
		}
	}
	texts, err := document.Read("../..")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| [0-9.]+x \| .*\n`).FindAllString(texts["docs/distributed.md"], -1)
	assert.Equal(t, table.String(), strings.Join(rows, ""), "weir sim (expected), and docs/distributed.md (actual)")
}
