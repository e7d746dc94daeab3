package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests build the program, run it, and check its exit status and output. The packages test the details.

const excerpt = "../internal/replay/testdata/apache_access_excerpt.log"

var directory string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if directory, err = os.MkdirTemp("", "weir"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(directory)
		return m.Run()
	}())
}

var builtOnce = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(directory, "weir")
	c := exec.Command("go", "build", "-o", path, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0") // also where the tests need cgo for the race detector
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

func build(t *testing.T) string {
	t.Helper()
	path, err := builtOnce()
	require.NoError(t, err)
	return path
}

type result struct {
	status         int
	stdout, stderr string
}

func run(t *testing.T, program, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	// If a program should refuse its arguments but keeps running, the test must not hang.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func TestProgramReplays(t *testing.T) {
	program := build(t)
	log, err := os.ReadFile(excerpt)
	require.NoError(t, err)

	fromFile := run(t, program, "", "replay", "--json", "--limit", "10/m", excerpt)
	assert.Equal(t, 0, fromFile.status)
	assert.Empty(t, fromFile.stderr)
	var report struct {
		Requests, Skipped, Keys, Allowed, Refused int
		RefusedKeys                               []json.RawMessage `json:"refused_keys"`
	}
	require.NoError(t, json.Unmarshal([]byte(fromFile.stdout), &report))
	assert.Equal(t, 500, report.Requests)
	assert.Equal(t, 0, report.Skipped)
	assert.Equal(t, 109, report.Keys)
	assert.Equal(t, 446, report.Allowed)
	assert.Equal(t, 54, report.Refused)
	assert.NotEmpty(t, report.RefusedKeys)

	t.Run("standard input gives the same", func(t *testing.T) {
		assert.Equal(t, fromFile, run(t, program, string(log), "replay", "--json", "--limit", "10/m", "-"))
	})
	t.Run("table, without a bar where nobody looks", func(t *testing.T) {
		table := run(t, program, string(log), "replay", "--top", "1", "--limit", "10/m", "-")
		assert.Equal(t, 0, table.status)
		assert.Empty(t, table.stderr)
		assert.Regexp(t, `^standard input \(combined\) at token bucket 10/m burst 10, by ip\n\nrequests +500\n`, table.stdout)
		assert.Contains(t, table.stdout, "most refused")
	})
	t.Run("what sorting changes", func(t *testing.T) {
		got := run(t, program, "", "replay", "--limit", "1/s", "--burst", "5", excerpt)
		assert.Regexp(t, `(?m)^out of order +468  by at most 59s, sorted$`, got.stdout)
		assert.Contains(t, got.stdout, "\nSorting changes what is refused from 30.00 % (150) to 0.00 % (0) of the requests.\n")
	})
	t.Run("doubts do not spoil the JSON", func(t *testing.T) {
		doubtful := run(t, program, "nonsense\n"+string(log), "replay", "--json", "--limit", "1/d", "--max-keys", "1", "-")
		assert.Equal(t, 0, doubtful.status)
		assert.True(t, json.Valid([]byte(doubtful.stdout)))
		assert.Contains(t, doubtful.stderr, `weir: lines skipped: 1, the first is line 1: no date in brackets`)
		assert.Contains(t, doubtful.stderr, "weir: The figures are approximate")
	})
}

// TestProgramReplaysBehindAProxy: if a proxy is in front of the server, the result has a warning. With a flag, the
// client is read from a header.
func TestProgramReplaysBehindAProxy(t *testing.T) {
	program := build(t)
	var log strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&log, `{"time_iso8601":"2026-11-20T09:00:00Z","remote_addr":"10.0.0.1","request":"GET / HTTP/1.1","status":200,`+
			`"http_x_forwarded_for":"192.0.2.%d"}`+"\n", i%100)
	}
	const note = "100.00 % of the requests are of 10.0.0.1. If that is your proxy"
	for _, args := range []string{"", "--compare", "--suggest"} {
		table := run(t, program, log.String(), strings.Fields("replay --limit 20/m "+args+" -")...)
		assert.Contains(t, table.stdout, "\n\n"+note, args)
		doubts := run(t, program, log.String(), strings.Fields("replay --json --limit 20/m "+args+" -")...)
		assert.Contains(t, doubts.stderr, "weir: "+note, args)
		assert.True(t, json.Valid([]byte(doubts.stdout)), args)
	}
	behind := run(t, program, log.String(), "replay", "--limit", "20/m", "--client", "x-forwarded-for", "-")
	assert.NotContains(t, behind.stdout, "proxy")
	assert.Regexp(t, `(?m)^keys +100$`, behind.stdout)
	wrong := run(t, program, log.String(), "replay", "--limit", "20/m", "--client", "Forwarded", "-")
	assert.NotZero(t, wrong.status)
	assert.Contains(t, wrong.stderr, "--client Forwarded: standard input: the log does not have the header field Forwarded")
}

func TestProgramSuggestsByClients(t *testing.T) {
	program := build(t)
	got := run(t, program, "", "replay", "--refuse-clients", "1", excerpt)
	assert.Equal(t, 0, got.status, got.stderr)
	assert.Contains(t, got.stdout, "\nlimit: limits that refuse at most 1 % of the keys of a day\n500 requests of 109 keys; 109 if")
	for _, share := range []string{"1", "1%"} {
		got = run(t, program, "", "replay", "--json", "--refuse-clients", share, excerpt)
		assert.Contains(t, got.stdout, `{"abusive":false,"percent":1,"requests":500,"keys":109,"key_days":109,`)
	}
	got = run(t, program, "", "replay", "--json", "--suggest", excerpt)
	assert.Contains(t, got.stdout, `{"abusive":true,"percent":0,"requests":500,`)
	for args, want := range map[string]string{
		"--refuse-clients NaN":         `--refuse-clients "NaN": want a share in percent`,
		"--refuse-clients 1%%":         `--refuse-clients "1%%": want a share in percent`,
		"--refuse-clients many":        `--refuse-clients "many": want a share in percent`,
		"--refuse-clients 100":         `--refuse-clients "100": want a share in percent, 0 up to, not including, 100`,
		"--refuse-clients=":            `--refuse-clients "": want a share in percent`,
		"--refuse-clients 1 --compare": "--compare: it goes with neither",
	} {
		got := run(t, program, "", append(strings.Fields("replay "+args), excerpt)...)
		assert.Equal(t, 80, got.status, args)
		assert.Contains(t, got.stderr, want)
	}
}

func TestProgramReplaysByAnyAlgorithm(t *testing.T) {
	program := build(t)
	for args, want := range map[string]string{
		"--algorithm batch-refill":           `{"policy":"batch refill 6/15s burst 6","format":"combined","requests":500,"skipped":0,"out_of_order":468,"out_of_order_seconds":59,"far_dates":0,"keys":109,"allowed":461,"refused":39,`,
		"--algorithm fixed-window":           `{"policy":"fixed window 6/15s","format":"combined","requests":500,"skipped":0,"out_of_order":468,"out_of_order_seconds":59,"far_dates":0,"keys":109,"allowed":460,"refused":40,`,
		"--algorithm fixed-window --aligned": `{"policy":"fixed window 6/15s, aligned","format":"combined","requests":500,"skipped":0,"out_of_order":468,"out_of_order_seconds":59,"far_dates":0,"keys":109,"allowed":461,"refused":39,`,
		"--algorithm sliding-window":         `{"policy":"sliding window 6/15s","format":"combined","requests":500,"skipped":0,"out_of_order":468,"out_of_order_seconds":59,"far_dates":0,"keys":109,"allowed":456,"refused":44,`,
		"--algorithm sliding-log":            `{"policy":"sliding log 6/15s","format":"combined","requests":500,"skipped":0,"out_of_order":468,"out_of_order_seconds":59,"far_dates":0,"keys":109,"allowed":454,"refused":46,`,
	} {
		got := run(t, program, "", append(strings.Fields("replay --json --limit 6/15s "+args), excerpt)...)
		assert.Equal(t, 0, got.status, got.stderr)
		assert.True(t, strings.HasPrefix(got.stdout, want), got.stdout)
	}
}

func TestProgramCompares(t *testing.T) {
	program := build(t)
	table := run(t, program, "", "replay", "--compare", "--limit", "6/15s", excerpt)
	assert.Equal(t, 0, table.status)
	assert.Empty(t, table.stderr)
	assert.True(t, strings.HasPrefix(table.stdout, excerpt+" (combined) at 6/15s, by ip\n"), table.stdout)
	for _, row := range []string{
		`token bucket 6/15s burst 6 +480 +20 +4\.00 % +135 +3 +5 +27`,
		`fixed window 6/15s +460 +40 +8\.00 % +137 +7 +3 +27`,
		`sliding window 6/15s +456 +44 +8\.80 % +144 +6 +2 +27`,
		`sliding log 6/15s +454 +46 +9\.20 % +144 +7 +0 +1\d\d`,
	} {
		assert.Regexp(t, "(?m)^"+row+"$", table.stdout)
	}

	log, err := os.ReadFile(excerpt)
	require.NoError(t, err)
	doubtful := run(t, program, "nonsense\n"+string(log), "replay", "--compare", "--json", "--limit", "4/d", "--max-keys", "1", "-")
	assert.Equal(t, 0, doubtful.status)
	assert.True(t, json.Valid([]byte(doubtful.stdout)))
	assert.Contains(t, doubtful.stderr, "weir: lines skipped: 1, the first is line 1")
	assert.Contains(t, doubtful.stderr, "weir: The figures are approximate")
}

func TestProgramRefusesBadInput(t *testing.T) {
	program := build(t)
	dir := t.TempDir()
	truncated := filepath.Join(dir, "truncated.gz")
	require.NoError(t, os.WriteFile(truncated, []byte("\x1f\x8b\x08\x00\x00"), 0o600))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()

	cases := map[string]struct {
		args   string
		status int
		want   string
	}{
		"rate of zero":      {"serve --limit 0/s", 80, `"0/s"`},
		"negative rate":     {"serve --limit=-1/s", 80, `"-1/s"`},
		"rate above 1e9":    {"serve --limit 2000000000/s", 80, `2000000000/s`},
		"rate not a number": {"replay --limit NaN/s x", 80, `"NaN/s"`},
		"rate without unit": {"serve --limit 5", 80, `"5"`},
		"burst of zero":     {"serve --listen :0 --admin none --burst 0", 80, "--burst 0: want 1 to 4294967296"},
		"burst too large":   {"replay --burst 4294967297 " + excerpt, 80, "--burst 4294967297: want 1 to 4294967296"},
		"negative burst":    {"serve --burst=-1", 80, `--burst: expected a valid 64 bit uint but got "-1"`},
		"no such algorithm": {"serve --algorithm leaky", 80, `algorithm "leaky": want token-bucket, batch-refill, fixed-window`},
		"burst of a window": {"serve --algorithm fixed-window --limit 10/m --burst 10", 80, "--burst 10: a fixed-window has none, because all of its limit, 10/m, may come at once"},
		"half a request":    {"serve --algorithm sliding-log --limit 0.5/m", 80, "such as 1/2m0s"},
		"too long a log":    {"replay --algorithm sliding-log --limit 5000/h " + excerpt, 80, "limit of 5000 tokens every 1h0m0s: want 1 to 4096"},
		"aligned bucket":    {"replay --aligned x", 80, "--aligned: a token-bucket has no windows of the clock"},
		"compared one":      {"replay --compare --algorithm sliding-log x", 80, "--algorithm sliding-log: --compare runs"},
		"compared burst":    {"replay --compare --burst 5 x", 80, "--burst 5: --compare gives"},
		"compared keys":     {"replay --compare --top 5 x", 80, "--top 5: --compare shows no keys"},
		"compared empty":    {"replay --compare -", 1, "standard input: the log is empty"},
		"no keys":           {"serve --listen :0 --admin none --max-keys 0", 80, "MaxKeys(0)"},
		"negative keys":     {"serve --listen :0 --admin none --max-keys=-1", 80, "MaxKeys(-1)"},
		"beyond memory":     {"serve --listen :0 --admin none --max-keys 99999999999999", 80, "MaxKeys(99999999999999)"},
		"key":               {"serve --key cookie", 80, `--key: unknown key "cookie"`},
		"key of a replay":   {"replay --key header:X " + excerpt, 80, `--key must be one of "ip"`},
		"remote admin":      {"serve --admin 0.0.0.0:8081", 80, "--admin: admin: 0.0.0.0:8081 can be reached from other machines"},
		"two files":         {"serve a.yaml --config b.yaml", 80, "want one rule file"},
		"file and flag":     {"serve a.yaml --upstream http://x", 80, "--upstream: the rules of a.yaml define"},
		"no rule file":      {"serve missing.yaml", 1, "there is no file missing.yaml"},
		"trusted proxy":     {"serve --trusted-proxy 10.0.0.1/8", 80, "--trusted-proxy: trusted_proxies"},
		"listen address":    {"serve --listen 8080", 80, `--listen: address: "8080": want host:port`},
		"upstream":          {"serve --upstream localhost:9000", 80, `--upstream: upstream: "localhost:9000": want a URL that begins with http://`},
		"command":           {"overflow", 80, "unexpected argument overflow"},
		"no file":           {"replay", 80, "<file>"},
		"port in use":       {"serve --listen " + taken.Addr().String(), 1, "the port is in use"},
		"missing file":      {"replay missing.log", 1, "there is no file missing.log"},
		"directory":         {"replay " + dir, 1, "is a directory"},
		"truncated gzip":    {"replay " + truncated, 1, "truncated.gz: the gzip data breaks off after line 0"},
		"empty input":       {"replay -", 1, "standard input: the log is empty"},
		"another file":      {"replay ../go.mod", 1, "line 1 is in no known format (nor is any after it); is it an access log?"},
		"another format":    {"replay --format alb " + excerpt, 1, "none of its lines is in the format alb (line 1: the line ends too early)"},
		"no such format":    {"replay --format apache x", 80, "--format apache: want combined, common, vhost_combined, nginx_json"},
		"same log twice":    {"replay " + excerpt + " ./" + excerpt, 1, "its requests would count twice"},
		"no such logs":      {"replay " + dir + "/*.log", 1, "there is no file whose name is of the form"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, program, "", strings.Fields(c.args)...)
			assert.Equal(t, c.status, got.status)
			assert.Empty(t, got.stdout)
			assert.True(t, strings.HasPrefix(got.stderr, "weir: error: "), got.stderr)
			assert.Contains(t, got.stderr, c.want)
			assert.NotContains(t, got.stderr, "panic")
		})
	}
}

func TestProgramServesUntilItIsTold(t *testing.T) {
	for args, policy := range map[string]string{
		"--limit 1/h --burst 5":                             "token bucket 1/h burst 5",
		"--limit 5/h":                                       "token bucket 5/h burst 5",
		"--algorithm batch-refill --limit 5/365d":           "batch refill 5/8760h0m0s burst 5",
		"--algorithm fixed-window --limit 5/h":              "fixed window 5/1h0m0s",
		"--algorithm fixed-window --aligned --limit 5/365d": "fixed window 5/8760h0m0s, aligned",
		"--algorithm sliding-window --limit 5/365d":         "sliding window 5/8760h0m0s",
		"--algorithm sliding-log --limit 5/h":               "sliding log 5/1h0m0s",
	} {
		t.Run(policy, func(t *testing.T) { serves(t, strings.Fields(args), policy) })
	}
}

// serves starts the program with a limit of five requests. It checks that the program refuses further requests, and
// ends it.
func serves(t *testing.T, args []string, policy string) {
	t.Helper()
	cmd := exec.Command(build(t), append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--max-keys", "1000"}, args...)...)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	require.True(t, lines.Scan(), "no start line")
	url := regexp.MustCompile(`msg=listening url=(http://127\.0\.0\.1:[1-9][0-9]*/) for=clients`).FindStringSubmatch(lines.Text())
	require.Len(t, url, 2, lines.Text())
	require.True(t, lines.Scan(), "no line about the administrator's page")
	admin := regexp.MustCompile(`msg=listening url=(http://127\.0\.0\.1:[1-9][0-9]*/) for=administrators`).FindStringSubmatch(lines.Text())
	require.Len(t, admin, 2, lines.Text())
	require.True(t, lines.Scan(), "no line about the rule")
	require.Contains(t, lines.Text(), `msg=limiting rule=default policy="`+policy+`" key=ip`)

	var got []int
	for range 7 {
		resp, err := http.Get(url[1])
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		got = append(got, resp.StatusCode)
	}
	assert.Equal(t, []int{200, 200, 200, 200, 200, 429, 429}, got)

	resp, err := http.Get(admin[1] + "metrics")
	require.NoError(t, err)
	metrics, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Regexp(t, `(?m)^weir_.*rule="default".* 5$`, string(metrics))

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	var last string
	for lines.Scan() {
		last = lines.Text()
	}
	assert.NoError(t, cmd.Wait(), "a signal is a normal end")
	assert.Contains(t, last, "msg=stopped requests=7 allowed=5 refused=2 upstream_failures=0")
}

func TestProgramExplainsItself(t *testing.T) {
	program := build(t)
	alone := run(t, program, "")
	assert.Equal(t, 0, alone.status)
	assert.Equal(t, alone, run(t, program, "", "--help"), "alone it prints the help")
	for _, word := range []string{"serve", "replay", "version", "Exit status"} {
		assert.Contains(t, alone.stdout, word)
	}
	assert.Contains(t, run(t, program, "", "serve", "--help").stdout, "trusted-proxy names it")
	version := run(t, program, "", "version")
	assert.Equal(t, 0, version.status)
	assert.Regexp(t, `^weir \S+\n(commit .*\n)?go\S+ \w+/\w+\n$`, version.stdout)
}
