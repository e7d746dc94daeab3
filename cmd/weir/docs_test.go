//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/document"
	"github.com/weir-go/weir/redislimit/sim"
)

// The tests below run the commands in the documents. Go's cache of test results does not notice changes outside of this
// module. So `make test` runs these tests without the cache.

// TestCommandsOfTheDocuments runs commands that end within seconds. The document shows the output of a command, or its
// last lines. The command must print exactly this.
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

// TestRequestsOfTheREADME sends the requests of the README to the server that `make run` starts. The limit of the
// server is another one, because on a busy machine a token could come back during the test.
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

// TestDocumentedTablesOfTheSimulator: `weir sim` prints the tables of distributed.md.
func TestDocumentedTablesOfTheSimulator(t *testing.T) {
	texts, err := document.Read("../..")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| ([0-9.]+x|`--[^`]*`) \\| ([^|]*) \\| .*").FindAllStringSubmatch(texts["docs/distributed.md"], -1)
	program := build(t)
	reports := map[string]sim.Report{}
	for _, row := range rows {
		name, way := row[1], row[2]
		if _, ok := reports[name]; !ok {
			args := []string{"sim", "--json", "--load", strings.TrimSuffix(name, "x")}
			if flags, ok := strings.CutPrefix(name, "`"); ok {
				args = append([]string{"sim", "--json", "--duration", "20s", "--strategy", "strict,lease"},
					strings.Fields(strings.TrimSuffix(flags, "`"))...)
			}
			got := run(t, program, "", args...)
			require.Equal(t, 0, got.status, got.stderr)
			var r sim.Report
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
			reports[name] = r
		}
		results := reports[name].Results
		i := slices.IndexFunc(results, func(o sim.Result) bool { return strings.Replace(o.Title, "later ", "", 1) == way })
		if assert.GreaterOrEqual(t, i, 0, "%s: no such way", row[0]) {
			o, held := results[i], "holds"
			if !o.Holds {
				held = "broken"
			}
			want := fmt.Sprintf("| %s | %s | %s | %.3f %% | %.1f | %.1f | %.0f %s |", name, way, percent(o.FirstOfLimit),
				100*o.RefusedShare, o.CallsASec, o.Worst, o.WorstBound, held)
			assert.Equal(t, want, row[0], "weir sim (expected), and docs/distributed.md (actual)")
		}
	}
	assert.Len(t, reports, 14)
	assert.Len(t, rows, 3*5+11*2)
}
