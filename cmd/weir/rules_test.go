package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestProgramChecksARuleFile(t *testing.T) {
	program := build(t)
	good := file(t, "weir.yaml", "rules: [{name: clients, rate: 10/s, burst: 20}]\n")
	r := run(t, program, "", "check", good)
	assert.Equal(t, result{0, good + ` is good

listen    127.0.0.1:8080 (HTTP/1.1)
upstream  the built-in echo
client    the connection's address; IPv6 by /64
answer    headers ietf, body problem

rule clients
  for     all requests
  by      ip
  limit   token bucket 10/s burst 20
  memory  26 MiB for 1,000,000 keys, then evict

1 rule, about 26 MiB of memory when the tables are full
`, ""}, r)
	assert.Equal(t, result{0, "", ""}, run(t, program, "", "check", "--quiet", good))
	schema := run(t, program, "", "check", "--schema")
	assert.Equal(t, 0, schema.status)
	assert.True(t, json.Valid([]byte(schema.stdout)))
	assert.Contains(t, schema.stdout, `"$schema": "http://json-schema.org/draft-07/schema#"`)
	assert.Contains(t, run(t, program, "", "check").stderr, "which file?")

	bad := file(t, "weir.yaml", "rules:\n  - name: clients\n    rat: 10/s\n    burst: -1\n")
	assert.Equal(t, result{
		1, "", bad + `:3:5: unknown key "rat": did you mean "rate"?` + "\n" +
			bad + `:4:12: burst: want a whole number from 1 to 4294967296, got -1` + "\n" +
			"weir: error: " + bad + " has mistakes: 2\n",
	}, run(t, program, "", "check", bad))
	assert.Equal(t, result{
		1, `{"file":"` + bad +
			`","good":false,"mistakes":[{"line":3,"column":5,"message":"unknown key \"rat\": did you ` +
			`mean \"rate\"?"},{"line":4,"column":12,"message":"burst: want a whole number from 1 to 4294967296, got -1"}],` +
			`"warnings":[],"rules":[]}` + "\n",
		"weir: error: " + bad + " has mistakes: 2\n",
	}, run(t, program, "", "check", "--json", bad))

	const doubtful = "trusted_proxies: 0.0.0.0/0\nrules: [{name: a, rate: 1/s, match: {path: /a}, shadow: true}]\n"
	r = run(t, program, doubtful, "check", "-")
	assert.True(t, strings.HasPrefix(r.stdout, "standard input is good\n"), r.stdout)
	assert.True(t, strings.HasPrefix(r.stderr, "weir: warning: trusted_proxies: 0.0.0.0/0 is every address"), r.stderr)
	r = run(t, program, doubtful, "check", "--json", "-")
	var described struct {
		Good     bool
		Warnings []string
		Rules    []struct {
			Name, Match, Key, Policy, State string
			Shadow                          bool
			Bytes                           uint64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &described), r.stdout)
	assert.True(t, described.Good)
	assert.Len(t, described.Warnings, 1)
	require.Len(t, described.Rules, 1)
	assert.Equal(t, "path /a", described.Rules[0].Match)
	assert.Equal(t, "token bucket 1/s burst 1", described.Rules[0].Policy)
	assert.Greater(t, described.Rules[0].Bytes, uint64(1<<20))
	assert.Empty(t, described.Rules[0].State)
	r = run(t, program, "state: "+filepath.ToSlash(t.TempDir())+"\n"+doubtful, "check", "--json", "-")
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &described), r.stdout)
	assert.True(t, filepath.IsAbs(described.Rules[0].State), r.stdout)
	assert.Equal(t, 80, run(t, program, "", "check", "--json", "--quiet", good).status)
	assert.Equal(t, 80, run(t, program, "", "check").status)
	assert.Equal(t, 1, run(t, program, "", "check", bad+".no").status)
}

func TestProgramReplaysRules(t *testing.T) {
	program := build(t)
	rules := file(t, "weir.yaml", `rules:
  - {name: clients, rate: 10/m, burst: 5}
  - {name: api, rate: 1/s, match: {host: api.example.com}}
`)
	page := filepath.Join(t.TempDir(), "report.html")
	r := run(t, program, "", "replay", "--rules", rules, "--html", page, "--refuse-clients", "5%", "--top", "1", excerpt)
	assert.Equal(t, 0, r.status, r.stderr)
	assert.Empty(t, r.stderr)
	for _, want := range []string{
		excerpt + " (combined) at the rules of " + rules, "\nclients      ", "api: cannot be judged from this log",
		"clients: most refused", "clients: limits that refuse at most 5 % of the keys of a day",
		"suggested for clients: rate: ",
	} {
		assert.Contains(t, r.stdout, want)
	}
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(html), "<!doctype html>"))
	left, err := os.ReadDir(filepath.Dir(page))
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing else is left behind")

	r = run(t, program, "", "replay", "--rules", rules, "--host", "api.example.com", "--json", excerpt)
	var got struct {
		Requests uint64
		Rules    []struct {
			Judged  bool
			Matched uint64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &got), r.stderr)
	assert.Equal(t, uint64(500), got.Requests)
	assert.True(t, got.Rules[1].Judged)
	assert.Equal(t, uint64(500), got.Rules[1].Matched)
}

// TestProgramSuggestsForTheFlags: the flags that describe a limit mean the same with --suggest and without it.
func TestProgramSuggestsForTheFlags(t *testing.T) {
	program := build(t)
	plain := run(t, program, "", "replay", "--limit", "10/m", "--burst", "5", "--top", "3", excerpt)
	r := run(t, program, "", "replay", "--limit", "10/m", "--burst", "5", "--top", "3", "--suggest", excerpt)
	assert.Equal(t, 0, r.status, r.stderr)
	refused := func(out string) string {
		_, after, _ := strings.Cut(out, "\nrefused ")
		line, _, _ := strings.Cut(after, "\n")
		return strings.TrimSpace(line)
	}
	assert.NotEmpty(t, refused(plain.stdout))
	assert.Equal(t, refused(plain.stdout), refused(r.stdout))
	assert.Contains(t, r.stdout, "limit: limits that refuse abusive keys only\n500 requests of 109 keys")
}

func TestProgramRefusesWhatRulesDoNotHeed(t *testing.T) {
	program := build(t)
	rules := file(t, "weir.yaml", "rules: [{name: a, rate: 1/s}]")
	for want, args := range map[string][]string{
		"--burst: the rules of":      {"--rules", rules, "--burst", "5"},
		"--limit: the rules of":      {"--rules", rules, "--limit", "5/s"},
		"--max-keys: the rules of":   {"--rules", rules, "--max-keys", "5"},
		"--compare: the rules of":    {"--rules", rules, "--compare"},
		"--compare: it goes with":    {"--suggest", "--compare"},
		"--host a: it needs --rules": {"--host", "a"},
	} {
		r := run(t, program, "", append(append([]string{"replay"}, args...), excerpt)...)
		assert.Equal(t, 80, r.status, want)
		assert.Contains(t, r.stderr, want)
		assert.Empty(t, r.stdout)
	}
	r := run(t, program, "", "replay", "--html", filepath.Join(t.TempDir(), "no", "report.html"), excerpt)
	assert.Equal(t, 1, r.status)
	assert.Contains(t, r.stderr, "cannot write")
}
