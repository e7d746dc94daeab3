package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// gatewayEnvironment has the variables that Envoy Gateway sets for the rate limit service that it deploys. They are
// from its test data of August 2026 (deployments/default.yaml and enable-tracing-custom.yaml).
var gatewayEnvironment = map[string]string{
	"RUNTIME_ROOT": "/data", "RUNTIME_SUBDIRECTORY": "ratelimit", "RUNTIME_IGNOREDOTFILES": "true",
	"RUNTIME_WATCH_ROOT": "false", "LOG_LEVEL": "info", "USE_STATSD": "false", "CONFIG_TYPE": "GRPC_XDS_SOTW",
	"CONFIG_GRPC_XDS_SERVER_URL": "envoy-gateway:18001", "CONFIG_GRPC_XDS_NODE_ID": "envoy-ratelimit",
	"GRPC_SERVER_USE_TLS": "true", "GRPC_SERVER_TLS_CERT": "/certs/tls.crt", "GRPC_SERVER_TLS_KEY": "/certs/tls.key",
	"GRPC_SERVER_TLS_CA_CERT": "/certs/ca.crt", "CONFIG_GRPC_XDS_SERVER_USE_TLS": "true",
	"CONFIG_GRPC_XDS_CLIENT_TLS_CERT": "/certs/tls.crt", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY": "/certs/tls.key",
	"CONFIG_GRPC_XDS_SERVER_TLS_CACERT": "/certs/ca.crt", "FORCE_START_WITHOUT_INITIAL_CONFIG": "true",
	"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": "redis.redis.svc:6379", "USE_PROMETHEUS": "true",
	"PROMETHEUS_ADDR": ":19001", "PROMETHEUS_MAPPER_YAML": "/etc/statsd-exporter/conf.yaml",
	"TRACING_ENABLED": "true", "TRACING_SERVICE_NAME": "envoy-ratelimit",
	"TRACING_SERVICE_NAMESPACE": "envoy-gateway-system", "TRACING_SERVICE_INSTANCE_ID": "envoy-ratelimit-0",
	"TRACING_SAMPLING_RATE": "0.6", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://trace-collector.envoy-gateway-system.svc:4318",
}

// gatewayMapping has the form of Envoy Gateway's mapping file.
const gatewayMapping = `
mappings:
  - match: "ratelimit.service.rate_limit.*.*.total_hits"
    name: "ratelimit_service_rate_limit_total_hits"
    timer_type: "histogram"
    labels: {domain: "$1", key1: "$2"}
  - match: "ratelimit_server.*.response_time"
    name: "ratelimit_service_response_time_seconds"
    timer_type: histogram
    labels: {grpc_method: "$1"}
`

// TestEnvoyGateway runs the program as Envoy Gateway does: with its environment, without arguments, and on its ports.
// Three things differ:
//   - The program listens on a loopback address instead of all addresses.
//   - The folders /certs and /etc are folders of the test.
//   - The addresses of other programs lead to servers of the test.
func TestEnvoyGateway(t *testing.T) {
	host := fmt.Sprintf("127.%d.%d.%d", 2+rand.IntN(250), rand.IntN(256), 1+rand.IntN(254))
	ca := newAuthority(t)
	certificate, key := ca.sign("envoy-gateway")
	certs := t.TempDir()
	for from, to := range map[string]string{certificate: "tls.crt", key: "tls.key", ca.file: "ca.crt"} {
		require.NoError(t, os.Rename(from, filepath.Join(certs, to)))
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "tls.crt"), filepath.Join(certs, "tls.key"))
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	trusted.AddCert(ca.cert)
	x := startXDS(t, host+":18001", grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	x.setFor(t, "envoy-ratelimit", "1", &configv3.RateLimitConfig{
		Name: "default/eg/http", Domain: "default/eg/http", Descriptors: limited(3).GetDescriptors(),
	})
	redis, _ := startRedis(t)
	mapping := filepath.Join(t.TempDir(), "conf.yaml")
	require.NoError(t, os.WriteFile(mapping, []byte(gatewayMapping), 0o644))

	environment := []string{"HOST=" + host, "GRPC_HOST=" + host, "DEBUG_HOST=" + host,
		"CONFIG_GRPC_XDS_SERVER_TLS_SAN=envoy-gateway", "REDIS_AUTH=sesame", "REDIS_TIMEOUT=10s"}
	here := strings.NewReplacer("/certs/", certs+"/", "envoy-gateway:18001", host+":18001", "redis.redis.svc:6379", redis,
		":19001", host+":19001", "/etc/statsd-exporter/conf.yaml", mapping, "trace-collector.envoy-gateway-system.svc", host)
	for name, value := range gatewayEnvironment {
		environment = append(environment, name+"="+here.Replace(value))
	}
	log := launch(t, environment).log
	get := func(address string) (int, string) {
		response, err := http.Get("http://" + address)
		if err != nil {
			return 0, ""
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	until(t, "the probes pass", func() bool { code, _ := get(host + ":8080/healthcheck"); return code == http.StatusOK })
	until(t, "the rules have come", func() bool { return strings.Contains(log(), "rules=1") })

	connection, err := grpc.NewClient(host+":8081", grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		RootCAs: trusted, ServerName: "envoy-gateway",
	})))
	require.NoError(t, err)
	defer connection.Close()
	codes := map[rlsv3.RateLimitResponse_Code]int{}
	for range 5 {
		response, err := rlsv3.NewRateLimitServiceClient(connection).ShouldRateLimit(context.Background(),
			request("default/eg/http", "day", "x", 1))
		require.NoError(t, err, log())
		codes[response.GetOverallCode()]++
	}
	assert.Equal(t, map[rlsv3.RateLimitResponse_Code]int{rlsv3.RateLimitResponse_OK: 3, rlsv3.RateLimitResponse_OVER_LIMIT: 2}, codes)
	_, text := get(host + ":19001/metrics")
	for _, line := range []string{
		`ratelimit_service_rate_limit_total_hits{domain="default/eg/http",key1="day"} 5`,
		`ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 5`,
		"process_resident_memory_bytes ", "process_virtual_memory_bytes ", "go_goroutines ",
	} {
		assert.Contains(t, text, "\n"+line)
	}
}

// launched is the program in a separate process.
type launched struct {
	*exec.Cmd
	t   *testing.T
	end func() error // waits until the process ends
}

var directory string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if directory, err = os.MkdirTemp("", "weir-envoy"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(directory)
		return m.Run()
	}())
}

var built = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(directory, "ratelimit")
	c := exec.Command("go", "build", "-o", path, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0") // also where the tests need cgo for the race detector
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// launch runs the program with arguments, or without any as the image does.
func launch(t *testing.T, environment []string, args ...string) *launched {
	t.Helper()
	path, err := built()
	require.NoError(t, err)
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer stderr.Close()
	command := exec.Command(path, args...)
	command.Env, command.Stderr = environment, stderr
	require.NoError(t, command.Start())
	l := &launched{command, t, sync.OnceValue(command.Wait)}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		assert.NoError(t, l.end())
	})
	return l
}

func (l *launched) log() string {
	text, err := os.ReadFile(l.Stderr.(*os.File).Name())
	require.NoError(l.t, err)
	return string(text)
}

// TestImage: in the image, the program is where Envoy Gateway and docker compose files for envoyproxy/ratelimit expect
// it. Such a compose file has the name of its own program as the command. So the entry point of weir's image gets this
// name as an argument.
func TestImage(t *testing.T) {
	recipe, err := os.ReadFile("../../Dockerfile.envoy")
	require.NoError(t, err)
	assert.Contains(t, string(recipe), "ln -s ../weir-envoy /image/bin/ratelimit")
	assert.Equal(t, []string{"serve"}, arguments([]string{"/bin/ratelimit", "serve"}))
	assert.Empty(t, arguments([]string{"/bin/ratelimit"}))
	assert.Equal(t, []string{"check", "/bin/ratelimit"}, arguments([]string{"check", "/bin/ratelimit"}))
}
