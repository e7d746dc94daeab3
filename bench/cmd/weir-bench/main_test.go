package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/cmd/internal/programtest"
	"github.com/weir-go/weir/bench/markdown"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

func TestProgramMeasuresAndReports(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "run.json")
	status, measured, stderr := programtest.Execute(t, nil, "--quick", "--rounds", "1", "--rows", "full-1k,memory",
		"--json", file)
	require.Equal(t, 0, status, stderr)
	assert.Regexp(t, `^1 rounds, \d+ processes, about \d+s\n$`, stderr, "no bar without a terminal")
	assert.Contains(t, measured, "allowed, 1,000 keys in a table for 1,000 (full-1k), GOMAXPROCS 1")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.True(t, json.Valid(text))

	page := filepath.Join(folder, "page.html")
	status, again, stderr := programtest.Execute(t, nil, "--from", file, "--html", page, "--svg", folder)
	require.Equal(t, 0, status, stderr)
	assert.Empty(t, stderr)
	assert.Equal(t, measured, again, "the same report, without measuring")
	for _, name := range []string{"page.html", "bench-speed.svg", "bench-memory.svg"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		assert.Contains(t, string(text), "</svg>")
	}

	short := filepath.Join(folder, "short.md")
	require.NoError(t, os.WriteFile(short, []byte(markdown.Begin("weir bench")+markdown.End), 0o600))
	status, _, stderr = programtest.Execute(t, nil, "--from", file, "--short", short, "--also", file+","+file)
	require.Equal(t, 0, status, stderr)
	text, err = os.ReadFile(short)
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(text), "| 1 core |"))
}

func TestProgramRefusesBadInput(t *testing.T) {
	folder := t.TempDir()
	bad := filepath.Join(folder, "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{"format":7}`), 0o600))
	programtest.Refuses(t, map[string]programtest.Refusal{
		"unknown row": {Arguments: strings.Fields("--rows churm"), Status: 80,
			Want: `row "churm": want one of allowed-1,`},
		"half a name": {Arguments: strings.Fields("--rows zipf"), Status: 80, Want: "did you mean zipf-1m?"},
		"rounds":      {Arguments: strings.Fields("--rounds=-1"), Status: 80, Want: "-1 rounds: want 1 to 1000"},
		"both efforts": {Arguments: strings.Fields("--quick --full"), Status: 80,
			Want: "--quick and --full can't be used together"},
		"from and measure": {Arguments: strings.Fields("--from x.json --quick"), Status: 80, Want: "--from measures nothing"},
		"also alone":       {Arguments: strings.Fields("--from x.json --also y.json"), Status: 80, Want: "--also adds runs to the file of --short"},
		"unknown flag":     {Arguments: strings.Fields("--fast"), Status: 80, Want: "unknown flag --fast"},
		"missing file": {Arguments: strings.Fields("--from " + folder + "/missing.json"), Status: 1,
			Want: "no such file"},
		"another format": {Arguments: strings.Fields("--from " + bad), Status: 1,
			Want: "bad.json: format 7 of a run: want 1"},
	})
}
