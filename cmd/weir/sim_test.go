package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/redislimit/sim"
)

func TestProgramSimulates(t *testing.T) {
	program := build(t)
	page, picture := filepath.Join(t.TempDir(), "sim.html"), filepath.Join(t.TempDir(), "sim.svg")
	got := run(t, program, "", "sim", "--json", "--duration", "2s", "--load", "3", "--nodes", "4", "--shares", "90/5/3/2",
		"--html", page, "--svg", picture)
	require.Equal(t, 0, got.status, got.stderr)
	assert.Empty(t, got.stderr, "no bar without a terminal")
	var r sim.Report
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	assert.Equal(t, "1000/s", r.Rate)
	assert.InDelta(t, 6000, r.Offered, 400)
	require.Len(t, r.Results, 5)
	assert.Equal(t, r.Ideal, r.Results[0].Admitted)
	assert.True(t, r.Results[1].Holds, "the bound of leases")

	for _, file := range []string{page, picture} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, 5, strings.Count(string(text), `<rect class="blue" x="0.00%"`), "a bar for each strategy")
		for _, name := range []string{"strict", "leased", "settling later every 200 ms", "settling later every 10 ms"} {
			assert.Contains(t, string(text), ">"+name+"</text>")
		}
		assert.NotContains(t, string(text), "ZgotmplZ")
		assert.Contains(t, string(text), "prefers-color-scheme: dark")
	}
	text, err := os.ReadFile(picture)
	require.NoError(t, err)
	var drawing struct {
		XMLName xml.Name
		Width   int `xml:"width,attr"`
	}
	require.NoError(t, xml.Unmarshal(text, &drawing), "a picture that stands alone is XML")
	assert.Equal(t, xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"}, drawing.XMLName)
	assert.Equal(t, 420, drawing.Width)

	away := run(t, program, "", "sim", "--json", "--duration", "3s", "--down", "1s..2s", "--on-loss", "share",
		"--strategy", "strict")
	require.Equal(t, 0, away.status, away.stderr)
	r = sim.Report{}
	require.NoError(t, json.Unmarshal([]byte(away.stdout), &r))
	assert.Equal(t, &sim.Span{From: time.Second, To: 2 * time.Second}, r.Away)
	assert.Equal(t, 600.0, r.Results[0].WorstBound)
	assert.Less(t, r.Results[0].Questions, r.Offered*3/4)

	table := run(t, program, "", "sim", "--duration", "1s", "--strategy", "strict,settle-later-100ms")
	assert.Equal(t, 0, table.status, table.stderr)
	assert.True(t, strings.HasPrefix(table.stdout,
		"1000/s, burst 200, on 4 nodes at 10 times that, round trip 1ms\n\nrequests "), table.stdout)
	assert.Regexp(t, `(?m)^strict .* holds\nsettle-later-100ms .* BROKEN$`, table.stdout)
	assert.Equal(t, table, run(t, program, "", "sim", "--duration", "1s", "--strategy", "strict,settle-later-100ms"),
		"the seed decides")
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
		"--down 2s":        "--down 2s: want two times of the simulation, such as 2s..3s",
		"--down 2s..x":     "--down 2s..x: want two times",
		"--down 3s..2s":    "sim: a store that is away from 3s to 2s: want a span of the simulated 10s",
		"--on-loss open":   "--on-loss",
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
