package reference

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// needs has the tests of the suite that need another server, with the port of that server.
var needs = map[string]string{
	"TestBasicTLSConfig":                   "16381",
	"Test_mTLS":                            "16381",
	"TestBasicAuthConfigWithRedisCluster":  "6386",
	"TestBasicAuthConfigWithRedisSentinel": "26394",
	"TestBasicConfigMemcache":              "", // there is no memcache in weir-envoy
	"TestConfigMemcacheWithMaxIdleConns":   "",
	"TestMultiNodeMemcache":                "",
}

// TestSuite runs envoyproxy/ratelimit's integration suite against weir-envoy. The suite must be compiled as
// bin/integration.test. In it, testdata/runner.go must replace the package src/service_cmd/runner.
func TestSuite(t *testing.T) {
	folder := checkout(t)
	suite := filepath.Join(folder, "bin", "integration.test")
	if _, err := os.Stat(suite); err != nil {
		t.Skip("no bin/integration.test in the checkout: its suite is not compiled with testdata/runner.go")
	}
	suite, err := filepath.Abs(suite)
	require.NoError(t, err)
	names, err := exec.Command(suite, "-test.list", ".*").Output()
	require.NoError(t, err)
	root, err := filepath.Abs(folder)
	require.NoError(t, err)
	environment := append(os.Environ(), "WEIR_ENVOY="+weirEnvoy(t), "PROJECT_DIR="+root+"/")
	for name := range strings.FieldsSeq(string(names)) {
		t.Run(name, func(t *testing.T) {
			if port, there := needs[name]; there && !listens(port) {
				t.Skip("weir-envoy has no memcache, or the servers of this test do not run: port ", port)
			}
			command := exec.Command(suite, "-test.run", "^"+name+"$", "-test.v")
			// The tests read certificates relative to their package.
			command.Dir, command.Env = filepath.Join(folder, "test", "integration"), environment
			out, err := command.CombinedOutput()
			assert.NoError(t, err, string(out))
			t.Log(strings.Count(string(out), "--- PASS"), "passed, the test itself among them")
		})
	}
}

func listens(port string) bool {
	if port == "" {
		return false
	}
	connection, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return false
	}
	connection.Close()
	return true
}
