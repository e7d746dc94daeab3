package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weir-go/weir/internal/freeport"
)

const file = `
domain: d
descriptors:
  - key: day
    rate_limit: {unit: year, requests_per_unit: 3}
`

// running is the program under test.
type running struct {
	t      *testing.T
	ports  map[string]int // by the names of flags
	rls    rlsv3.RateLimitServiceClient
	health healthv1.HealthClient
	stderr string // name of the file with its output
	end    func() error
}

func freePorts(t *testing.T, names ...string) map[string]int {
	t.Helper()
	ports := map[string]int{}
	for _, name := range names {
		ports[name] = freeport.Number(t)
	}
	return ports
}

func parse(t *testing.T, args ...string) *serveCommand {
	t.Helper()
	c := &commands{}
	parser, err := kong.New(c)
	require.NoError(t, err)
	_, err = parser.Parse(append([]string{"serve"}, args...))
	require.NoError(t, err)
	return &c.Serve
}

// start runs the program on free ports until the test ends, and waits until it answers.
func start(t *testing.T, dial []grpc.DialOption, args ...string) *running {
	t.Helper()
	r := &running{t: t, ports: freePorts(t, "port", "debug-port", "grpc-port", "prometheus-port", "statsd-port")}
	all := []string{"--host=127.0.0.1", "--debug-host=127.0.0.1", "--grpc-host=127.0.0.1", "--log-level=info",
		"--use-prometheus", fmt.Sprintf("--prometheus-addr=127.0.0.1:%d", r.ports["prometheus-port"])}
	for _, name := range []string{"port", "debug-port", "grpc-port", "statsd-port"} {
		all = append(all, fmt.Sprintf("--%s=%d", name, r.ports[name]))
	}
	c := parse(t, append(all, args...)...)
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	r.stderr = stderr.Name()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { defer stderr.Close(); ended <- c.serve(ctx, stderr) }()

	if dial == nil {
		dial = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	target := fmt.Sprintf("127.0.0.1:%d", c.GRPCPort)
	if c.GRPCUDS != "" {
		target = "unix:" + c.GRPCUDS
	}
	connection, err := grpc.NewClient(target, dial...)
	require.NoError(t, err)
	r.rls, r.health = rlsv3.NewRateLimitServiceClient(connection), healthv1.NewHealthClient(connection)
	done := false
	r.end = func() error {
		if done {
			return nil
		}
		done = true
		connection.Close()
		cancel()
		return <-ended
	}
	t.Cleanup(func() { assert.NoError(t, r.end()) })
	for {
		select {
		case err := <-ended:
			done = true
			connection.Close()
			cancel()
			t.Fatal(err)
		default:
		}
		asking, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := r.health.Check(asking, &healthv1.HealthCheckRequest{Service: "ratelimit"}, grpc.WaitForReady(true))
		cancel()
		if err == nil {
			return r
		}
	}
}

func request(domain, key, value string, hits uint32) *rlsv3.RateLimitRequest {
	return &rlsv3.RateLimitRequest{Domain: domain, HitsAddend: hits, Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
	}}
}

// The method left sends one hit and returns how many hits remain. It returns -1 if the hit is refused, and -2 if no
// limit applies.
func (r *running) left(key, value string) int {
	r.t.Helper()
	response, err := r.rls.ShouldRateLimit(context.Background(), request("d", key, value, 1))
	require.NoError(r.t, err)
	switch s := response.GetStatuses()[0]; {
	case s.GetCurrentLimit() == nil:
		return -2
	case s.GetCode() == rlsv3.RateLimitResponse_OVER_LIMIT:
		return -1
	default:
		return int(s.GetLimitRemaining())
	}
}

func (r *running) address() string { return fmt.Sprintf("127.0.0.1:%d", r.ports["grpc-port"]) }

func (r *running) get(port, path string) (int, string) {
	r.t.Helper()
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", r.ports[port], path))
	require.NoError(r.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	return response.StatusCode, string(body)
}

func (r *running) log() string {
	r.t.Helper()
	text, err := os.ReadFile(r.stderr)
	require.NoError(r.t, err)
	return string(text)
}

// write writes files into the folder config below a new root, and returns the root.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, "config", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	return root
}

// The function until waits until the function done returns true. The parameter what describes the condition for the
// error.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute until %s", what)
		}
	}
}

// TestProgram calls the running program over real gRPC and HTTP.
func TestProgram(t *testing.T) {
	r := start(t, nil, "--runtime-root="+write(t, map[string]string{"a.yaml": file}))
	for _, want := range []int{2, 1, 0, -1} {
		assert.Equal(t, want, r.left("day", "x"))
	}
	assert.Equal(t, -2, r.left("other", "x"))

	code, body := r.get("port", "/healthcheck")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "OK", body)

	post := func(body string) (int, string) {
		response, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/json", r.ports["port"]), "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(text)
	}
	const asks = `{"domain": "d", "descriptors": [{"entries": [{"key": "day", "value": "%s"}]}]}`
	code, body = post(fmt.Sprintf(asks, "y"))
	assert.Equal(t, http.StatusOK, code)
	var answer struct {
		OverallCode string
		Statuses    []struct{ LimitRemaining int }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	assert.Equal(t, "OK", answer.OverallCode)
	assert.Equal(t, 2, answer.Statuses[0].LimitRemaining)
	code, body = post(fmt.Sprintf(asks, "x"))
	assert.Equal(t, http.StatusTooManyRequests, code)
	assert.Contains(t, body, "OVER_LIMIT")
	code, _ = post("{")
	assert.Equal(t, http.StatusBadRequest, code)
	code, body = post(`{"descriptors": []}`)
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, body, "rate limit domain must not be empty")
	code, _ = r.get("port", "/json")
	assert.Equal(t, http.StatusBadRequest, code)
	code, _ = post(`{"domain": "` + strings.Repeat("x", 2<<20) + `"}`)
	assert.Equal(t, http.StatusRequestEntityTooLarge, code)

	_, body = r.get("debug-port", "/rlconfig")
	assert.Equal(t, "d.day: unit=YEAR requests_per_unit=3, shadow_mode: false, quota_mode: false\n", body)
	_, body = r.get("debug-port", "/stats")
	assert.Contains(t, body, "ratelimit.service.rate_limit.d.day.total_hits: 6\n")
	assert.Contains(t, body, "ratelimit.service.rate_limit.d.day.over_limit: 2\n")
	assert.Contains(t, body, "ratelimit.service.call.should_rate_limit.service_error: 1\n")
	code, _ = r.get("debug-port", "/debug/pprof/")
	assert.Equal(t, http.StatusNotFound, code, "profiles are opt-in")
	_, body = r.get("prometheus-port", "/metrics")
	assert.Contains(t, body, `ratelimit_service_rate_limit_total_hits{domain="d",key1="day"} 6`)
	assert.Contains(t, body, `ratelimit_service_should_rate_limit_error{err_type="service_error"} 1`)
	assert.Contains(t, body, `weir_envoy_table_keys{table="fixed window of 8760h0m0s"}`)
}

// TestFilesAreWatched: the program notices a changed file, a new file of any name, and a mistake.
func TestFilesAreWatched(t *testing.T) {
	root := write(t, map[string]string{"a.yaml": file, ".hidden.yaml": "domain: ["})
	r := start(t, nil, "--runtime-root="+root)
	assert.Equal(t, 2, r.left("day", "x"))
	name := filepath.Join(root, "config", "a.yaml")

	require.NoError(t, os.WriteFile(name, []byte(strings.Replace(file, "requests_per_unit: 3", "requests_per_unit: 30", 1)), 0o644))
	until(t, "the write is seen", func() bool { return r.left("day", "x") > 3 })

	require.NoError(t, os.MkdirAll(filepath.Join(root, "config", "deep"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "config", "deep", "b.conf"), []byte("domain: e\n"), 0o644))
	until(t, "the new file is seen", func() bool { return strings.Contains(r.log(), "domains=2") })

	before := r.left("day", "y")
	require.NoError(t, os.WriteFile(name, []byte("domain: d\nwrong: 1\n"), 0o644))
	until(t, "the mistake is told", func() bool {
		return strings.Contains(r.log(), name+":2:1: config error, unknown key 'wrong'")
	})
	assert.Equal(t, before-1, r.left("day", "y"), "the rules before stay")
	_, body := r.get("debug-port", "/stats")
	assert.Contains(t, body, "config_load_error: 1\n")
}

// TestAFileThatIsWrittenToAllTheTime: one file is written all the time. The other files are read nevertheless.
func TestAFileThatIsWrittenToAllTheTime(t *testing.T) {
	root := write(t, map[string]string{"a.yaml": file})
	r := start(t, nil, "--runtime-root="+root)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		noise := filepath.Join(root, "config", ".noise.txt")
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.WriteFile(noise, []byte("x"), 0o644)
				time.Sleep(time.Millisecond)
			}
		}
	}()
	name := filepath.Join(root, "config", "a.yaml")
	require.NoError(t, os.WriteFile(name, []byte(strings.Replace(file, "requests_per_unit: 3", "requests_per_unit: 30", 1)), 0o644))
	i := 0 // a new key each time, so that no key is used up
	until(t, "the write is seen", func() bool { i++; return r.left("day", fmt.Sprint(i)) > 3 })
	close(stop)
	<-stopped
}

// TestASwappedLink: a link in the path is changed to another folder, and the program notices it. Kubernetes and
// deployments of envoyproxy/ratelimit change files in this way.
func TestASwappedLink(t *testing.T) {
	root := t.TempDir()
	for version, limit := range map[string]string{"v1": "3", "v2": "30"} {
		directory := filepath.Join(root, version, "app", "config")
		require.NoError(t, os.MkdirAll(directory, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(directory, "a.yaml"),
			[]byte(strings.Replace(file, "requests_per_unit: 3", "requests_per_unit: "+limit, 1)), 0o644))
	}
	current := filepath.Join(root, "current")
	require.NoError(t, os.Symlink("v1", current))
	r := start(t, nil, "--runtime-root="+current, "--runtime-subdirectory=app")
	assert.Equal(t, 2, r.left("day", "x"))
	require.NoError(t, os.Symlink("v2", current+".new"))
	require.NoError(t, os.Rename(current+".new", current))
	until(t, "the swap is seen", func() bool { return r.left("day", "x") > 3 })

	// Changing the link back shows that the program now watches the new folder.
	require.NoError(t, os.Symlink("v1", current+".new"))
	require.NoError(t, os.Rename(current+".new", current))
	until(t, "the swap back is seen", func() bool { return r.left("day", "x") <= 3 })
}

// TestTheLogSaysWhatIsReadOfLimits: the log says which limits of values were read. If they could not be read, it says
// why.
func TestTheLogSaysWhatIsReadOfLimits(t *testing.T) {
	limits := filepath.Join(t.TempDir(), "accounts.csv")
	require.NoError(t, os.WriteFile(limits, []byte("anna,7/m\n"), 0o600))
	r := start(t, nil, "--runtime-root="+write(t, map[string]string{"a.yaml": `
domain: d
descriptors:
  - key: account
    rate_limit: {unit: minute, requests_per_unit: 3, quotas: {every: 1s, file: ` + limits + `}}
`}))
	assert.Equal(t, 6, r.left("account", "anna"))
	assert.Regexp(t, `(?m)limits read.*accounts\.csv.*keys"?[=:]1\b`, r.log())
	require.NoError(t, os.WriteFile(limits, []byte("anna,gold\n"), 0o600))
	until(t, "the file is read again", func() bool { return strings.Contains(r.log(), "limits not read: the previous ones stay active") })
	assert.Contains(t, r.log(), "want the name of a plan")
}
