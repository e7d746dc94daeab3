package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAuditExitStatus checks the exit status of a wrong command line, of a failed audit, and of an audit without
// findings.
func TestAuditExitStatus(t *testing.T) {
	program := build(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer upstream.Close()
	team := []string{"-H", "X-Team: team-{n}"}
	for says, c := range map[string]struct {
		args   []string
		status int
	}{
		"wants a URL or --log FILE":         {nil, 80},
		"want 50 to 100,000":                {[]string{"--requests", "1", upstream.URL}, 80},
		"--budget wants the URL":            {[]string{"--budget", "--log", "x"}, 80},
		"{n} in its value":                  {[]string{"--budget", upstream.URL}, 80},
		"--tokens 10: want 4000":            {append(team, "--budget", "--tokens", "10", upstream.URL), 80},
		"--settle -1s: want":                {append(team, "--budget", "--settle=-1s", upstream.URL), 80},
		"--i-run-this-server":               {append(team, "--budget", "http://192.0.2.1/"), 1},
		"--method: --budget decides":        {append(team, "--budget", "--method", "PUT", upstream.URL), 80},
		"--tokens: only --budget uses it":   {[]string{"--tokens", "5000", upstream.URL}, 80},
		"--header: with --log no request":   {append(team, "--log", "x"), 80},
		"no-such-file":                      {[]string{"--ca", "no-such-file", "https://127.0.0.1:1/"}, 1},
		"the budget cannot be measured":     {append(team, "--budget", "--model-at", "127.0.0.1:0", upstream.URL), 1},
		"the model of the audit: listen":    {append(team, "--budget", "--model-at", "127.0.0.1:none", upstream.URL), 1},
		`--header "X-Team": want 'Name: va`: {[]string{"-H", "X-Team", upstream.URL}, 80},
	} {
		got := run(t, program, "", append([]string{"audit"}, c.args...)...)
		assert.Equal(t, c.status, got.status, "%v %v", c.args, got)
		assert.Contains(t, got.stderr, says, c.args)
	}
	var log strings.Builder
	for i := range 300 {
		fmt.Fprintf(&log, "192.0.2.1 - - [01/Mar/2026:12:%02d:%02d +0000] \"GET / HTTP/1.1\" %d 1 \"-\" \"-\"\n", i/30, i%30*2,
			map[bool]int{true: 200, false: 429}[i%30 < 10])
	}
	file := filepath.Join(t.TempDir(), "access.log")
	require.NoError(t, os.WriteFile(file, []byte(log.String()), 0o600))
	got := run(t, program, "", "audit", "--json", "--log", file)
	require.Equal(t, 2, got.status, got)
	var report struct {
		Kind   string
		Tokens int
		Per    string
		Faults int

		Undecided []string
		Most      *struct{}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	assert.Equal(t, 10, report.Tokens)
	assert.Equal(t, "1m", report.Per)
	assert.Contains(t, report.Kind, "window")
	assert.NotEmpty(t, report.Undecided, "a log without bursts does not tell kinds of windows apart")
	assert.Nil(t, report.Most, "so nothing is too much")
}
