package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// stateOf starts a server with a state folder and sends requests to it. It returns the file of the server's rule.
func stateOf(t *testing.T, requests int) (s *started, path string) {
	dir := t.TempDir()
	s = startProgram(t, "serve", file(t, "weir.yaml", fmt.Sprintf(
		"listen: 127.0.0.1:0\nstate: %s\nrules: [{name: clients, key: header:X-Key, rate: 1/h, burst: 2, max_keys: 100}]\n", dir)))
	url := s.until(`msg=listening url=(\S+) for=clients`)[0]
	for i := range requests {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		r.Header.Set("X-Key", fmt.Sprint(i))
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	files, err := filepath.Glob(filepath.Join(dir, "clients-*.weir"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	return s, files[0]
}

// TestProgramShowsATable: a server uses a table. Another process can show the table as text and as JSON at the same
// time.
func TestProgramShowsATable(t *testing.T) {
	server, path := stateOf(t, 5)
	text := run(t, build(t), "", "table", path)
	assert.Equal(t, 0, text.status, text.stderr)
	assert.True(t, strings.HasPrefix(text.stdout, path+": token bucket 1/h burst 2\n\nlayout version 8, "), text.stdout)
	for _, line := range []string{`MaxKeys 100, Shards 1, Overflow evict, .*`, `keys indebted +5 .*`, `  live +5 .*`, `    by the dead +0 .*`,
		`attached +1`, fmt.Sprintf(`  seat 0: process %d for .*s`, server.Process.Pid)} {
		assert.Regexp(t, "(?m)^"+line+"$", text.stdout)
	}
	var seen tableJSON
	got := run(t, build(t), "", "table", "--json", path)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &seen), got.stderr)
	assert.Equal(t, path, seen.File)
	assert.EqualValues(t, 5, seen.Indebted)
	assert.EqualValues(t, seen.Slots, seen.Live+seen.NeverUsed)
	assert.Equal(t, "100", seen.Options["MaxKeys"])
	assert.Len(t, seen.Attached, 1)
	assert.Contains(t, got.stdout, `"tiers":[]`)
}

// TestProgramWatchesATable: if the output is a pipe, the program writes one line per second. After an interrupt, it
// ends with status 0.
func TestProgramWatchesATable(t *testing.T) {
	_, path := stateOf(t, 3)
	for flags, form := range map[string]string{"--watch": `^\S+Z indebted=3 live=3 .* attached=1$`, "--watch --json": `^\{"file":.*"indebted":3,.*\}$`} {
		cmd := exec.CommandContext(t.Context(), build(t), append(strings.Fields("table "+flags), path)...)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range 2 {
			require.True(t, lines.Scan())
			assert.Regexp(t, form, lines.Text())
		}
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		assert.NoError(t, cmd.Wait())
	}
}

// TestWatchOnATerminal: on a terminal, each reading overwrites the previous one. Lines that are no longer needed are
// erased.
func TestWatchOnATerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	l, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 5), engine.Shared(path), engine.MaxKeys(100), engine.Tiers(engine.Unlimited()))
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ticks := make(chan time.Time)
	var out bytes.Buffer
	c := tableCommand{File: path, Watch: true}
	done := make(chan error)
	go func() { done <- c.watch(ctx, &out, true, ticks) }()
	ticks <- time.Time{} // by now the first reading is complete
	cancel()
	require.NoError(t, <-done)
	looks := strings.Split(out.String(), "\x1b[H")
	require.GreaterOrEqual(t, len(looks), 3)
	for _, look := range looks[1:] {
		assert.Contains(t, look, "\ntier 1: unlimited\x1b[K\n")
		assert.True(t, strings.HasSuffix(look, "\x1b[J"))
		assert.NotRegexp(t, `[^K]\n`, look, "a longer line stays no longer")
	}
}

// TestProgramRefusesTablesThatAreNone: if a file is not a table, the status is 1. One line names the file and the
// reason.
func TestProgramRefusesTablesThatAreNone(t *testing.T) {
	foreign := file(t, "foreign", strings.Repeat("x", 1<<14))
	require.NoError(t, os.Chmod(foreign, 0o600))
	_, truncated := stateOf(t, 0)
	short := filepath.Join(t.TempDir(), "short")
	text, err := os.ReadFile(truncated)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(short, text[:len(text)/2], 0o600))
	for path, want := range map[string]string{
		foreign: "this is not the file of a shared table", "missing": "there is no file missing",
		short: "its header says", t.TempDir(): "not a regular file",
	} {
		got := run(t, build(t), "", "table", path)
		assert.Equal(t, 1, got.status)
		assert.Empty(t, got.stdout)
		assert.Regexp(t, `^weir: error: .*`+regexp.QuoteMeta(path), got.stderr)
		assert.Contains(t, got.stderr, want)
	}
	assert.Equal(t, 80, run(t, build(t), "", "table").status)
}

// TestProgramCarriesATable: while a server uses a file, the program can copy, convert and restore it. It reports how
// many keys owe something.
func TestProgramCarriesATable(t *testing.T) {
	_, path := stateOf(t, 5)
	folder := t.TempDir()
	backup, large := filepath.Join(folder, "backup"), filepath.Join(folder, "large")
	for _, c := range []struct {
		want string
		args []string
	}{
		{path + ": copied to " + backup + ": 5 keys indebted\n", []string{"--copy", backup}},
		{path + ": restored from " + backup + ": 5 keys indebted\n", []string{"--restore", backup}},
		{path + ": copied to " + large + ": 5 keys indebted\n", []string{"--convert", large, "--max-keys", "5000", "--overflow", "refuse"}},
	} {
		got := run(t, build(t), "", append(append([]string{"table"}, c.args...), path)...)
		assert.Equal(t, 0, got.status, got.stderr)
		assert.Equal(t, c.want, got.stdout)
	}
	text := run(t, build(t), "", "table", large)
	assert.Regexp(t, `MaxKeys 5000, Shards \d+, Overflow refuse`, text.stdout, "the shards are those of a limiter of that size")
	for want, args := range map[string][]string{
		"file exists":             {"--copy", backup},
		"can't be used together":  {"--copy", backup + "2", "--restore", backup},
		"are for --convert":       {"--copy", backup + "2", "--max-keys", "5"},
		"want evict, refuse or a": {"--convert", large + "2", "--overflow", "none"},
		"MaxKeys(0)":              {"--convert", large + "2", "--max-keys", "0"},
		"Shards(0)":               {"--convert", large + "2", "--shards", "0"},
	} {
		got := run(t, build(t), "", append(append([]string{"table"}, args...), path)...)
		assert.NotEqual(t, 0, got.status)
		assert.Contains(t, got.stderr, want)
	}
}

// TestRootCarriesATableOfAnother: if root converts or restores a user's table, it uses the rights of the user. So the
// programs of the user can open the new files, and links of the user cannot lead root elsewhere.
func TestRootCarriesATableOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may act for others")
	}
	const user = 4242
	_, path := stateOf(t, 5)
	folder, err := os.MkdirTemp("/dev/shm", "weir-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	file, secret, backup := filepath.Join(folder, "table"), t.TempDir(), filepath.Join(t.TempDir(), "backup")
	require.NoError(t, engine.CopyShared(path, file))
	require.NoError(t, os.Symlink(secret, filepath.Join(folder, "link")))
	for _, name := range []string{folder, file} {
		require.NoError(t, os.Chown(name, user, user))
	}
	does := func(want string, args ...string) {
		t.Helper()
		got := run(t, build(t), "", append(append([]string{"table"}, args...), file)...)
		assert.Contains(t, got.stdout+got.stderr, want)
	}
	belongs := func(name string) {
		t.Helper()
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.EqualValues(t, user, info.Sys().(*syscall.Stat_t).Uid, name)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
	}
	does("keys indebted                 5")
	does("copied to "+backup+": 5 keys indebted", "--copy", backup)
	does("restored from "+backup+": 5 keys indebted", "--restore", backup)
	does("copied to "+file+".2: 5 keys indebted", "--convert", file+".2", "--max-keys", "5000")
	belongs(file + ".2")
	does("permission denied", "--convert", filepath.Join(folder, "link", "x"))
	require.NoError(t, os.Remove(file))
	does("restored from "+backup+": 5 keys indebted", "--restore", backup)
	belongs(file)
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "weir-restore-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
	entries, err := os.ReadDir(secret)
	require.NoError(t, err)
	assert.Empty(t, entries)
}
