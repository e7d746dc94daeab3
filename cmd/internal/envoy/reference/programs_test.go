// Package reference compares weir-envoy with envoyproxy/ratelimit at a pinned commit: `make test-envoy-reference`.
package reference

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weir-go/weir/internal/freeport"
)

// pinned is the commit of envoyproxy/ratelimit to which docs/envoy.md refers.
const pinned = "f2fb15770f7fd1c88ca6c3a1b58ee513917ace96"

// checkout returns the folder of envoyproxy/ratelimit with its programs, built by its Makefile. Without this folder, it
// skips the test.
func checkout(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("WEIR_ENVOY_REFERENCE")
	if folder == "" {
		t.Skip("WEIR_ENVOY_REFERENCE is not set: make test-envoy-reference REFERENCE=<a checkout of envoyproxy/ratelimit at " +
			pinned[:7] + ">")
	}
	head, err := exec.Command("git", "-C", folder, "rev-parse", "HEAD").Output()
	require.NoError(t, err, "WEIR_ENVOY_REFERENCE=%s is not a checkout", folder)
	require.Equal(t, pinned, strings.TrimSpace(string(head)), "the commit of WEIR_ENVOY_REFERENCE=%s", folder)
	return folder
}

func program(t *testing.T, folder, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(folder, "bin", name))
	require.NoError(t, err)
	_, err = os.Stat(path)
	require.NoError(t, err, "the checkout has to be compiled before: want bin/%s in it", name)
	return path
}

func weirEnvoy(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir-envoy")
	out, err := exec.Command("go", "build", "-o", path, "github.com/weir-go/weir/cmd/weir-envoy").CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

func run(t *testing.T, environment []string, path string, args ...string) {
	t.Helper()
	command := exec.Command(path, args...)
	var log bytes.Buffer
	command.Env, command.Stdout, command.Stderr = environment, &log, &log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		if t.Failed() {
			t.Logf("%s: %s", path, log.String())
		}
	})
}

func redis(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	require.NoError(t, err)
	port := strconv.Itoa(freeport.Number(t))
	run(t, nil, path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	address := "127.0.0.1:" + port
	require.Eventually(t, func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return address
}

// serve starts a rate limit service with the rules in root, and returns a client of it.
func serve(t *testing.T, path, root string, environment ...string) rlsv3.RateLimitServiceClient {
	t.Helper()
	port := strconv.Itoa(freeport.Number(t))
	run(t, append([]string{
		"HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "GRPC_PORT=" + port, "PORT=" + strconv.Itoa(freeport.Number(t)),
		"DEBUG_PORT=" + strconv.Itoa(freeport.Number(t)), "RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false",
		"USE_STATSD=false", "DISABLE_STATS=true", "LOG_LEVEL=error",
	}, environment...), path)
	connection, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { connection.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = healthv1.NewHealthClient(connection).Check(ctx, &healthv1.HealthCheckRequest{Service: "ratelimit"},
		grpc.WaitForReady(true))
	require.NoError(t, err)
	return rlsv3.NewRateLimitServiceClient(connection)
}
