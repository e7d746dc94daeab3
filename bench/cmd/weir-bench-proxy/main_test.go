package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/cmd/internal/programtest"
	"github.com/weir-go/weir/bench/proxy"
	"github.com/weir-go/weir/bench/proxy/server"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

// TestProgramMeasures: each measurement leaves neither processes nor files behind. Speeds are not checked.
func TestProgramMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some twenty seconds")
	}
	for _, p := range []server.Program{server.Wrk, server.Nginx().Program, server.HAProxy().Program} {
		if _, err := p.Find(); err != nil {
			t.Skip(err)
		}
	}
	weir := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", weir, ".")
	build.Dir = "../../../cmd/weir"
	build.Env = append(os.Environ(), "GOWORK=") // builds in the workspace of cmd, not of bench
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	temp, file := t.TempDir(), filepath.Join(t.TempDir(), "run.json")
	status, stdout, stderr := programtest.Execute(t, []string{"TMPDIR=" + temp}, "--rounds", "1", "--seconds", "1", "--turns", "2",
		"--weir", weir, "--json", file)
	require.Equal(t, 0, status, stderr)
	assert.Contains(t, stderr, "round 1 of 1: nginx limit_req, refuse")
	for _, name := range []string{"weir", "weir, headers: none", "nginx limit_req", "HAProxy stick table"} {
		assert.Contains(t, stdout, "\n"+name+" ")
	}
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var run proxy.Run
	require.NoError(t, json.Unmarshal(text, &run))
	rows, programs := 13, 5
	if _, err := server.Caddy().Program.Find(); err != nil {
		rows, programs = rows-1, programs-1
	}
	require.Len(t, run.Rows, rows)
	assert.Len(t, run.Versions, programs)
	require.Len(t, run.Turns, rows-9, "weir with its limiter and without, what it is compared with, and Caddy if it is there")
	for _, row := range run.Turns {
		require.Len(t, row.Rounds, 2)
		assert.Positive(t, row.Rounds[1].CPU, "%s, %s", row.Server.Name, row.Mode)
	}
	for _, row := range run.Rows {
		require.Len(t, row.Rounds, 1)
		assert.Positive(t, row.Rounds[0].CPU, "%s, %s", row.Server.Name, row.Mode)
		assert.Positive(t, row.Rounds[0].P99)
	}
}

// TestCaddyMayBeMissing: a missing Caddy is left out. Any other missing program is an error.
func TestCaddyMayBeMissing(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	for want := 5; want <= 6; want++ {
		var said strings.Builder
		all := servers("weir", "self", &said)
		assert.Len(t, all, want)
		assert.Equal(t, want == 5, strings.Contains(said.String(), "caddy is missing: make build-caddy, or apt-get install caddy; it is left out"))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "caddy"), []byte("#!/bin/sh\n"), 0o755))
	}
}

func TestProgramRefusesBadInput(t *testing.T) {
	programtest.Refuses(t, map[string]programtest.Refusal{
		"rounds":  {Arguments: strings.Fields("--rounds 0"), Status: 80, Want: "0 rounds: want 1 to 1000"},
		"seconds": {Arguments: strings.Fields("--seconds=-1"), Status: 80, Want: "-1 seconds: want 1 to 30"},
		"nothing to measure": {Arguments: strings.Fields("--from run.json --rounds 6"), Status: 80,
			Want: "--from measures nothing: leave out --rounds, --seconds, --turns and --weir"},
		"no run":       {Arguments: strings.Fields("--from /no/such/run.json"), Status: 1, Want: "/no/such/run.json: no such file"},
		"unknown flag": {Arguments: strings.Fields("--fast"), Status: 80, Want: "unknown flag --fast"},
		"no weir": {Arguments: strings.Fields("--weir /no/such/weir"), Status: 1,
			Want: "/no/such/weir is missing: build it with make build"},
	})
}
