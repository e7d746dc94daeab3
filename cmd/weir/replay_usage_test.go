package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// usageLog is an invented log of four teams.
const usageLog = "../internal/usagelog/testdata/usage.jsonl"

// TestFlagsWithoutEffect: a flag that would have no effect is refused, also if its value is the default.
func TestFlagsWithoutEffect(t *testing.T) {
	program := build(t)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	require.NoError(t, os.WriteFile(file, []byte("rules: [{name: a, rate: 1/s}]\n"), 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", file, "--limit", "1/s"}, "--limit: the rules of " + file + " define the limits"},
		{[]string{"serve", file, "--max-keys", "1000000"}, "--max-keys: the rules of "},
		{[]string{"serve", file, "--key", "ip"}, "--key: the rules of "},
		{[]string{"replay", "--rules", file, "--limit=1/s", usageLog}, "--limit: the rules of "},
		{[]string{"replay", "--count", "total", usageLog}, "--count: it needs --usage"},
		{[]string{"serve", "--listen", "127.0.0.1:1", "--listen", "127.0.0.1:2"}, "--listen is given twice"},
		{[]string{"check", "--json", "--json", file}, "--json is given twice"},
	} {
		got := run(t, program, "", c.args...)
		assert.Equal(t, 80, got.status, c.args)
		assert.Contains(t, got.stderr, c.want)
	}
	got := run(t, program, "", "check", "--explain", "GET /", "--header", "A: 1", "--header", "B: 2", file)
	assert.Equal(t, 0, got.status, "a list: %s", got.stderr)
}

// TestAPageDoesNotReplaceALog: --html does not name a file that the command reads.
func TestAPageDoesNotReplaceALog(t *testing.T) {
	program := build(t)
	text, err := os.ReadFile(usageLog)
	require.NoError(t, err)
	log := filepath.Join(t.TempDir(), "a.log")
	require.NoError(t, os.WriteFile(log, text, 0o600))
	for _, args := range [][]string{{"--usage", log}, {"--usage", filepath.Dir(log) + "/*.log"}, {"--rules", log, log}} {
		got := run(t, program, "", append([]string{"replay", "--html", log}, args...)...)
		assert.Equal(t, 80, got.status, args)
		assert.Contains(t, got.stderr, "the command reads this file: name another one")
	}
	after, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, text, after)
}

// TestProgramReplaysUsage: the program replays usage logs as text, JSON and a page. Without a limit, it uses the limit
// that it suggests.
func TestProgramReplaysUsage(t *testing.T) {
	program := build(t)
	got := run(t, program, "", "replay", "--usage", "--limit", "30000/m", "--estimate", "none,500", "--count", "output", usageLog)
	assert.Equal(t, 0, got.status, got.stderr)
	assert.Regexp(t, `^\S+usage.jsonl \(usage as lines of JSON\) at token bucket 30000/m burst 30000 of tokens\n\nrequests +400\n`, got.stdout)
	assert.Regexp(t, `\nnone +400 +0 [^\n]*\n500 +`, got.stdout)

	page := filepath.Join(t.TempDir(), "page.html")
	got = run(t, program, "", "replay", "--usage", "--suggest", "--json", "--html", page, usageLog)
	require.Equal(t, 0, got.status, got.stderr)
	var report struct {
		Policy     string
		Suggestion struct{ Best struct{ Policy string } }
		Estimates  []struct{ Estimate string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	assert.Equal(t, "token bucket 25000/m burst 25000", report.Policy, "that is suggested")
	assert.Equal(t, report.Policy, report.Suggestion.Best.Policy)
	assert.Len(t, report.Estimates, 3)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), "estimate: learned")

	line := `{"time":1795165200,"who":{"team":"a"},"usage":{"input_tokens":1,"output_tokens":1}}` + "\n"
	got = run(t, program, line, "replay", "--usage", "--limit", "10/m", "--by", "who.team", "-")
	assert.Equal(t, 0, got.status, got.stderr)
	assert.Regexp(t, `^standard input .*\n(.*\n)*keys +1  by who.team\n`, got.stdout)
}

// TestProgramRefusesUsageFlags: some flags cannot be combined. If no limit can be suggested for a log, this is an
// error.
func TestProgramRefusesUsageFlags(t *testing.T) {
	program := build(t)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--usage", usageLog}, 80, "set the tokens of each key with --limit"},
		{[]string{"--by", "team", usageLog}, 80, "--by: it needs --usage"},
		{[]string{"--estimate", "none", usageLog}, 80, "--estimate: it needs --usage"},
		{[]string{"--usage", "--limit", "9/s", "--estimate", "worst", usageLog}, 80, "which a usage log does not have"},
		{[]string{"--usage", "--limit", "10/s", "--compare", usageLog}, 80, "--compare: it is for access logs"},
		{[]string{"--usage", "--limit", "10/s", "--format", "caddy", usageLog}, 80, "--format: it is for access logs"},
		{[]string{"--usage", "--limit", "10/s", excerpt}, 1, "none of its records has a usage (line 2: no time"},
	} {
		got := run(t, program, "", append([]string{"replay"}, c.args...)...)
		assert.Equal(t, c.status, got.status, c.args)
		assert.Contains(t, got.stderr, c.want, c.args)
	}
	got := run(t, program, `{"time":1795165200,"usage":{"input_tokens":1}}`, "replay", "--usage", "--suggest", "-")
	assert.Equal(t, 1, got.status)
	assert.Contains(t, got.stderr, "no limit is suggested, because")
}
