package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parts writes a log as n rotated files. The oldest file is compressed. It returns a pattern that matches all the
// files.
func parts(t *testing.T, log []byte, n int) (pattern string) {
	t.Helper()
	dir := t.TempDir()
	lines := bytes.SplitAfter(log, []byte("\n"))
	for i, name := range []string{"access.log.2.gz", "access.log.1", "access.log"}[:n] {
		part := bytes.Join(lines[i*len(lines)/n:(i+1)*len(lines)/n], nil)
		if filepath.Ext(name) == ".gz" {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, err := w.Write(part)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			part = packed.Bytes()
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), part, 0o600))
	}
	return filepath.Join(dir, "access.log*")
}

func TestProgramReplaysRotatedLogs(t *testing.T) {
	program := build(t)
	log, err := os.ReadFile(excerpt)
	require.NoError(t, err)
	got := run(t, program, "", "replay", "--top", "0", parts(t, log, 3))
	assert.Equal(t, 0, got.status, got.stderr)
	assert.Regexp(t, `^3 files \(combined\) at token bucket 1/s burst 1, by ip\n\nrequests +500\n`, got.stdout)
	assert.Regexp(t, `keys +109\n`, got.stdout)
}

// TestProgramReplaysVirtualHosts: a line may begin with a virtual host, which is not the client. If it counted as the
// client, all clients of a host would be one client.
func TestProgramReplaysVirtualHosts(t *testing.T) {
	const line = ` - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8"` + "\n"
	log := "www.example.com:443 203.0.113.1" + line + "www.example.com:443 203.0.113.2" + line + "www.example.com:443 203.0.113.2" + line
	program := build(t)
	got := run(t, program, log, "replay", "--limit", "1/h", "--burst", "1", "--json", "-")
	assert.Equal(t, 0, got.status, got.stderr)
	var report struct {
		Format        string
		Keys, Refused int
		RefusedKeys   []struct{ Key string } `json:"refused_keys"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	assert.Equal(t, "vhost_combined", report.Format)
	assert.Equal(t, 2, report.Keys)
	assert.Equal(t, "203.0.113.2", report.RefusedKeys[0].Key)

	forced := run(t, program, log, "replay", "--format", "combined", "-")
	assert.Equal(t, 1, forced.status)
	assert.Contains(t, forced.stderr, `is "www.example.com:443" a virtual host, and "203.0.113.1" the client?`)
	mixed := run(t, program, log+"203.0.113.1"+line, "replay", "-")
	assert.Equal(t, 1, mixed.status)
	assert.Contains(t, mixed.stderr, "say --format combined or --format vhost_combined")
}

func TestProgramReplaysEveryFormat(t *testing.T) {
	program := build(t)
	logs, err := filepath.Glob("../internal/accesslog/testdata/logs/*.log")
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	for _, log := range logs {
		got := run(t, program, "", "replay", log)
		assert.Equal(t, 0, got.status, got.stderr)
		format := filepath.Base(log[:len(log)-len(".log")])
		assert.Contains(t, got.stdout, log+" ("+format+") at ")
	}
}
