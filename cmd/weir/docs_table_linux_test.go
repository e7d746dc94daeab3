package main

import (
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/document"
)

// TestTableOfTheDocument: two servers share a table, and 230 clients send requests to one of them. `weir table` then
// prints the output in docs/shared.md, except for values that vary.
func TestTableOfTheDocument(t *testing.T) {
	texts, err := document.Read("../..")
	require.NoError(t, err)
	text, folder, dir := texts["docs/shared.md"], "/dev/shm/weir", t.TempDir()
	rules := document.Examples(text, "yaml")[0].Code
	require.Contains(t, rules, "state: "+folder+" ")
	path := file(t, "weir.yaml", "listen: 127.0.0.1:0\n"+strings.ReplaceAll(rules, folder, dir))
	url := startProgram(t, "serve", path).until(`msg=listening url=(\S+) for=clients`)[0]
	startProgram(t, "serve", path).until(`msg=listening url=(\S+) for=clients`)
	for i := range 230 {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i+1))}}
		transport := &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}

	shown := document.Examples(text, "sh")
	require.Len(t, shown, 2)
	replace := strings.NewReplacer("bin/weir", build(t), folder, dir, "/var/backups", t.TempDir(), "NEW", filepath.Join(dir, "new.weir"))
	carried, err := exec.Command("bash", "-ec", replace.Replace(shown[1].Code)).CombinedOutput()
	require.NoError(t, err, "%s: %s", shown[1].Code, carried)
	command := replace.Replace(shown[0].Code)
	out, err := exec.Command("bash", "-ec", command).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	want := strings.ReplaceAll(shown[0].Output, folder, dir)
	assert.Equal(t, masked(want), masked(strings.TrimRight(string(out), "\n")), "weir table prints:\n%s", out)
}

// masked removes the values that change with every reading: times, processes, and how many keys were added or removed.
func masked(text string) string {
	for _, varies := range []struct{ pattern, mask string }{
		{`, made .* UTC`, ""}, // not every file system has this time
		{`(?m)^((?:keys indebted|  never used|  free|  live|  keys|  reclaimed) ) +[0-9,]+`, "$1 N"},
		{`(?m)^sweeps .*`, "sweeps N"},
		{`process \d+ for .*s`, "process P for T"},
	} {
		text = regexp.MustCompile(varies.pattern).ReplaceAllString(text, varies.mask)
	}
	return text
}
