package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/redislimit/sim"
)

func TestProgramSimulates(t *testing.T) {
	program := build(t)
	page := filepath.Join(t.TempDir(), "sim.html")
	got := run(t, program, "", "sim", "--json", "--duration", "2s", "--load", "3", "--nodes", "4", "--shares", "90/5/3/2", "--html", page)
	require.Equal(t, 0, got.status, got.stderr)
	assert.Empty(t, got.stderr, "no bar where nobody looks")
	var r sim.Report
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	assert.Equal(t, "1000/s", r.Rate)
	assert.InDelta(t, 6000, r.Offered, 400)
	require.Len(t, r.Results, 5)
	assert.Equal(t, r.Ideal, r.Results[0].Admitted)
	assert.True(t, r.Results[1].Holds, "the bound of leases")

	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, 5, strings.Count(string(text), `<rect class="part"`), "a bar for each strategy")
	assert.Contains(t, string(text), "<td>4: settle-later-10ms<td>")
	assert.NotContains(t, string(text), "ZgotmplZ")

	table := run(t, program, "", "sim", "--duration", "1s", "--strategy", "strict,settle-later-100ms")
	assert.Equal(t, 0, table.status, table.stderr)
	assert.True(t, strings.HasPrefix(table.stdout, "1000/s, burst 200, on 4 nodes at 10 times that, round trip 1ms\n\nrequests "), table.stdout)
	assert.Regexp(t, `(?m)^strict .* holds\nsettle-later-100ms .* BROKEN$`, table.stdout)
	assert.Equal(t, table, run(t, program, "", "sim", "--duration", "1s", "--strategy", "strict,settle-later-100ms"), "the seed decides")
}

func TestProgramRefusesToSimulateMistakes(t *testing.T) {
	program := build(t)
	for args, want := range map[string]string{
		"--nodes 0":        "sim: 0 nodes: want 1 to 10000",
		"--shares 90/x":    `--shares 90/x: "x" is not a number`,
		"--shares 90/10":   "sim: 2 shares for 4 nodes",
		"--strategy lax":   `--strategy: sim: strategy "lax": want strict, lease`,
		"--limit 0.5/s":    "sim: rate of 0.5/s: want a whole number of tokens",
		"--duration never": "--duration",
	} {
		got := run(t, program, "", append([]string{"sim"}, strings.Fields(args)...)...)
		assert.Equal(t, 80, got.status, args)
		assert.Empty(t, got.stdout)
		assert.Contains(t, got.stderr, want)
	}
	missing := run(t, program, "", "sim", "--duration", "1ms", "--html", filepath.Join(t.TempDir(), "no", "such.html"))
	assert.Equal(t, 1, missing.status)
	assert.Contains(t, missing.stderr, "no such file or directory")
}
