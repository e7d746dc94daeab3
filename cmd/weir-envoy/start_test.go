package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// TestStartsWithWhatItNeeds: the program does not start if something that it needs is missing or invalid.
func TestStartsWithWhatItNeeds(t *testing.T) {
	serve := func(args ...string) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return parse(t, args...).serve(ctx, os.Stderr)
	}
	assert.ErrorContains(t, serve("--runtime-root=/nowhere"), "/nowhere/config: no such file or directory: set RUNTIME_ROOT")
	root := write(t, map[string]string{"a.yaml": file})
	assert.ErrorContains(t, serve("--runtime-root="+root, "--near-limit-ratio=2"), "NearLimitRatio of 2: want 0 to 1")
	assert.ErrorContains(t, serve("--runtime-root="+root, "--log-level=loud"), "LOG_LEVEL=loud: want")
	assert.ErrorContains(t, serve("--runtime-root="+root, "--grpc-tls"), "no such file or directory")
	assert.ErrorContains(t, serve("--runtime-root="+root, "--grpc-uds="+root), "there is a file that is not a socket")
}

// TestTwoListenersOfOneAddress: two listeners with the same address are an error. The program must not start with only
// one of them.
func TestTwoListenersOfOneAddress(t *testing.T) {
	ports := freePorts(t, "one", "grpc")
	err := parse(t, "--runtime-root="+write(t, map[string]string{"a.yaml": file}), "--host=127.0.0.1", "--debug-host=127.0.0.1",
		"--grpc-host=127.0.0.1", fmt.Sprintf("--grpc-port=%d", ports["grpc"]), fmt.Sprintf("--port=%d", ports["one"]),
		fmt.Sprintf("--debug-port=%d", ports["one"])).serve(context.Background(), os.Stderr)
	assert.ErrorContains(t, err, "address already in use")
}

// TestNumbersWithoutAMeaning: the error for a meaningless number has its name, its value and the range.
func TestNumbersWithoutAMeaning(t *testing.T) {
	for flag, want := range map[string]string{
		"--port=70000":                 "PORT=70000: want 0 to 65535",
		"--grpc-port=-1":               "GRPC_PORT=-1: want 0 to 65535",
		"--max-keys=0":                 "MAX_KEYS=0: want 1 or more",
		"--header-reset=":              `LIMIT_RESET_HEADER="": want the name of a header`,
		"--header-limit=a b":           `LIMIT_LIMIT_HEADER="a b": want the name of a header`,
		"--request-reset=a:":           `LIMIT_REQUEST_RESET_HEADER="a:": want the name of a header`,
		"--stats-flush-interval=0s":    "STATS_FLUSH_INTERVAL=0s: want a millisecond or more",
		"--xds-backoff-initial=0s":     "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=0s: want a millisecond or more",
		"--xds-backoff-factor=-1":      "XDS_CLIENT_BACKOFF_RANDOM_FACTOR=-1: want 0 or more",
		"--xds-headers=a=b":            `"a=b": want key:value,key:value`,
		"--drain=-1s":                  "DRAIN=-1s: want a millisecond or more",
		"--grpc-max-connection-age=0s": "GRPC_MAX_CONNECTION_AGE=0s: want a millisecond or more",
		"--grpc-max-streams=0":         "GRPC_MAX_STREAMS=0: want 1 or more",
		"--grpc-max-message=0":         "GRPC_MAX_MESSAGE=0: want 1 or more bytes",
		"--redis-on-loss=share":        "REDIS_ON_LOSS=share with REPLICAS=0: want the number of replicas that share the limits",
		"--redis-state=debts":          "REDIS_STATE=debts: want the full path of a folder",
		"--prometheus-path=metrics":    "PROMETHEUS_PATH=metrics: want a path that begins with a slash",
	} {
		parser, err := kong.New(&commands{})
		require.NoError(t, err)
		_, err = parser.Parse([]string{"serve", flag})
		assert.ErrorContains(t, err, want)
	}
}

func TestUnixSocket(t *testing.T) {
	directory, err := os.MkdirTemp("", "weir") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(directory) })
	socket := filepath.Join(directory, "s")
	root := write(t, map[string]string{"a.yaml": file})
	r := start(t, nil, "--runtime-root="+root, "--grpc-uds="+socket)
	assert.Equal(t, 2, r.left("day", "x"))

	err = parse(t, "--runtime-root="+root, "--grpc-uds="+socket).serve(context.Background(), os.Stderr)
	assert.ErrorContains(t, err, "another program listens there")
	require.NoError(t, r.end())

	// Socket files that a killed process leaves do not prevent a start.
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	r = start(t, nil, "--runtime-root="+root, "--grpc-uds="+socket)
	assert.Equal(t, 2, r.left("day", "x"))
}

// TestHealth: with HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED, the program is not healthy while its configuration has no
// domain.
func TestHealth(t *testing.T) {
	root := write(t, map[string]string{".notes": ""})
	r := start(t, nil, "--runtime-root="+root, "--force-start-without-initial-config", "--healthy-with-at-least-one-config-loaded")
	status := func() healthv1.HealthCheckResponse_ServingStatus {
		response, err := r.health.Check(context.Background(), &healthv1.HealthCheckRequest{Service: "ratelimit"})
		require.NoError(t, err)
		return response.GetStatus()
	}
	assert.Equal(t, healthv1.HealthCheckResponse_NOT_SERVING, status())
	code, _ := r.get("port", "/healthcheck")
	assert.Equal(t, http.StatusInternalServerError, code)
	require.NoError(t, os.WriteFile(filepath.Join(root, "config", "a.yaml"), []byte(file), 0o644))
	until(t, "it is healthy", func() bool { return status() == healthv1.HealthCheckResponse_SERVING })
	code, _ = r.get("port", "/healthcheck")
	assert.Equal(t, http.StatusOK, code)
}

func TestVariables(t *testing.T) {
	assert.NoError(t, refusedVariables([]string{
		"PATH=/bin", "MEMCACHE_SRV=x", "USE_DOG_STATSD=false", "GRPC_PORT=1", "BACKEND_TYPE=Redis", "REDIS_POOL_ON_EMPTY_BEHAVIOR=wait",
	}))
	assert.EqualError(t, refusedVariables([]string{
		"USE_DOG_STATSD=true", "BACKEND_TYPE=memcache", "REDIS_POOL_ON_EMPTY_BEHAVIOR=ERROR",
	}),
		"BACKEND_TYPE=memcache: want redis, with REDIS_URL; without it counters are in memory, and memcache is not supported\n"+
			"REDIS_POOL_ON_EMPTY_BEHAVIOR=ERROR: want WAIT: one connection carries all calls\n"+
			"USE_DOG_STATSD is set, but cannot be supported: set USE_STATSD or USE_PROMETHEUS")
	assert.Equal(t, []variable{{"REDIS_POOL_SIZE", "no effect", "one connection carries all calls"}},
		ignoredVariables([]string{"REDIS_POOL_SIZE=5", "RUNTIME_IGNOREDOTFILES=false", "LOG_LEVEL=info"}))
	seen := map[string]bool{}
	for _, v := range variables() {
		assert.False(t, seen[v.name], "%s stands in two tables", v.name)
		assert.NotEmpty(t, v.text, v.name)
		seen[v.name] = true
	}
	var table strings.Builder
	table.WriteString("| variable | | what it is, or why not |\n|---|---|---|\n")
	names, rows := map[variable][]string{}, []variable{} // variables with the same text share a row
	for _, v := range variables() {
		row := variable{kind: strings.TrimPrefix(v.kind, "read"), text: v.text}
		if names[row] == nil {
			rows = append(rows, row)
		}
		names[row] = append(names[row], "`"+v.name+"`")
	}
	for _, row := range rows {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", strings.Join(names[row], ", "), row.kind, row.text)
	}
	const page = "../../docs/envoy.md"
	document, err := os.ReadFile(page)
	require.NoError(t, err)
	before, written, _ := strings.Cut(string(document), "| variable |")
	if os.Getenv("WEIR_WRITE") != "" {
		require.NoError(t, os.WriteFile(page, []byte(before+table.String()), 0o644))
		return
	}
	assert.Equal(t, table.String(), "| variable |"+written, "the table of docs/envoy.md: WEIR_WRITE=1 writes it")

	t.Setenv("GRPC_PORT", "12345")
	assert.Equal(t, 12345, parse(t).GRPCPort)
}

func TestCheck(t *testing.T) {
	root := write(t, map[string]string{"a.yaml": file})
	assert.NoError(t, (&checkCommand{Path: root}).Run())
	require.NoError(t, os.WriteFile(filepath.Join(root, "config", "b.yaml"), []byte(file), 0o644))
	assert.EqualError(t, (&checkCommand{Path: root}).Run(),
		filepath.Join(root, "config", "b.yaml")+":2:9: duplicate domain 'd' in config file")
	assert.ErrorContains(t, (&checkCommand{Path: root, MergeDomainConfig: true}).Run(), "duplicate descriptor composite key 'd.day'")
}
