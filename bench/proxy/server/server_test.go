package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func site(mode Mode) Site {
	return Site{Listen: "127.0.0.1:1111", Upstream: "127.0.0.1:2222", Dir: "/dir", Mode: mode, Header: "X-Client"}
}

// TestConfigLimitsInItsModesOnly: a server's configuration has limits only in the modes with a limiter.
func TestConfigLimitsInItsModesOnly(t *testing.T) {
	const everywhere = "everywhere"
	for name, c := range map[string]struct {
		server *Server
		want   map[Mode][]string
		not    map[Mode][]string
	}{
		"weir": {Weir("weir"), map[Mode][]string{
			everywhere: {"listen: 127.0.0.1:1111\n", "upstream: http://127.0.0.1:2222\n", `key: "header:X-Client"`,
				"headers: ietf"},
			Without: {"match: {host: nobody.invalid}"},
			With:    {"rate: 100000/s, burst: 100000}"},
			Refuse:  {"rate: 1/m, burst: 1}"},
		}, map[Mode][]string{With: {"match"}, Refuse: {"match"}}},
		"silent": {WeirSilent("weir"), map[Mode][]string{
			everywhere: {"headers: none"},
			Without:    {"match: {host: nobody.invalid}"},
			With:       {"rate: 100000/s, burst: 100000}"},
		}, map[Mode][]string{With: {"match"}}},
		"nginx": {Nginx(), map[Mode][]string{
			everywhere: {"listen 127.0.0.1:1111;", "server 127.0.0.1:2222;", "pid /dir/pid;", "worker_processes 1;"},
			With: {"limit_req_zone $http_x_client zone=clients:10m rate=100000r/s;",
				"limit_req zone=clients burst=100000 nodelay;"},
			Refuse: {"limit_req_zone $http_x_client zone=clients:10m rate=1r/m;", "limit_req zone=clients;",
				"limit_req_status 429;"},
		}, map[Mode][]string{Without: {"limit_req"}, Refuse: {"burst"}}},
		"haproxy": {HAProxy(), map[Mode][]string{
			everywhere: {"bind 127.0.0.1:1111\n", "server upstream 127.0.0.1:2222\n", "nbthread 1"},
			With: {"store http_req_rate(1s)", "track-sc0 req.hdr(x-client)",
				"deny_status 429 if { sc_http_req_rate(0) gt 100000 }"},
			Refuse: {"store http_req_rate(1m)", "track-sc0 req.hdr(x-client)",
				"deny_status 429 if { sc_http_req_rate(0) gt 1 }"},
		}, map[Mode][]string{Without: {"stick-table", "track-sc0", "deny"}}},
		"bare": {Bare("weir-bench-proxy"), map[Mode][]string{everywhere: {"127.0.0.1:1111\n127.0.0.1:2222\n"}}, nil},
		"caddy": {Caddy(), map[Mode][]string{
			everywhere: {"http://127.0.0.1:1111 {", "reverse_proxy 127.0.0.1:2222\n", "storage file_system /dir\n"},
		}, nil},
	} {
		for _, mode := range c.server.Modes {
			text, err := c.server.Config(site(mode))
			require.NoError(t, err, name)
			for _, want := range append(c.want[everywhere], c.want[mode]...) {
				assert.Contains(t, text, want, "%s, %s", name, mode)
			}
			for _, not := range c.not[mode] {
				assert.NotContains(t, text, not, "%s, %s", name, mode)
			}
		}
	}
	_, err := WeirSilent("weir").Config(site(Refuse))
	assert.EqualError(t, err, `weir, headers: none: mode "refuse": want one of ["without" "with"]`)
}

// TestServersTakeTheirConfigurations: each program checks its configuration and must accept it.
func TestServersTakeTheirConfigurations(t *testing.T) {
	for _, s := range []*Server{Nginx(), HAProxy()} {
		t.Run(s.Name, func(t *testing.T) {
			program, err := s.Program.Find()
			if err != nil {
				t.Skip(err)
			}
			for _, mode := range s.Modes {
				site := site(mode)
				site.Dir = t.TempDir()
				config := filepath.Join(site.Dir, "config")
				text, err := s.Config(site)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
				check := map[string][]string{"nginx": {"-t"}, "haproxy": {"-c"}}[s.Program.Name]
				out, err := exec.CommandContext(t.Context(), program, append(check, s.args(config)...)...).CombinedOutput()
				assert.NoError(t, err, "%s\n%s", out, text)
				assert.NotContains(t, string(out), "WARNING")
			}
		})
	}
}

func TestProgramThatIsMissing(t *testing.T) {
	missing := Program{Name: "weir-no-such-program", Package: "apt-get install it"}
	_, err := missing.Find()
	assert.EqualError(t, err, "weir-no-such-program is missing: apt-get install it")
	_, err = missing.FindVersion(t.Context())
	assert.EqualError(t, err, "weir-no-such-program is missing: apt-get install it")
	_, err = Weir(filepath.Join(t.TempDir(), "weir")).Start(t.Context(), With, "127.0.0.1:1", "X-Client")
	assert.ErrorContains(t, err, "weir, with: ")
	assert.ErrorContains(t, err, "is missing: build it with make build")
}

// TestServerThatEnds: if a server does not start, the error says why, and nothing stays behind.
func TestServerThatEnds(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	s := &Server{
		Name: "broken", Program: Program{Name: sh}, Modes: Modes,
		write: func(Site) string { return "echo no such directive >&2; exit 3\n" },
		args:  func(config string) []string { return []string{config} },
	}
	_, err = s.Start(t.Context(), With, "127.0.0.1:1", "X-Client")
	assert.ErrorContains(t, err, "broken ended by itself: exit status 3: no such directive")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
