package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
)

func rule(other string) string {
	return "rules: [{name: default, rate: 1/h, burst: 5, max_keys: 100, " + other + "}]\n"
}

func TestAReloadDoesNotRefillBuckets(t *testing.T) {
	s := start(t, one)
	assert.Equal(t, "200 200 200", s.statuses(3))
	s.change("headers: legacy\n" + rule("match: {host: 127.0.0.1}"))
	a, h := s.ask("/")
	assert.Equal(t, 200, a.status)
	assert.Equal(t, "1", h.Get("X-RateLimit-Remaining"))

	s.change("rules: [{name: default, rate: 1/h, burst: 10, max_keys: 100}]") // 4 tokens are taken, so 6 of 10 are left
	assert.Equal(t, "200 200 200 200 200 200 429", s.statuses(7))
	assert.Contains(t, s.log.String(), "reload: rule default: token bucket 1/h burst 10, was token bucket 1/h burst 5; "+
		"the tokens that a key has used still count, and what exceeds a lower limit must come back first")
	s.change(rule("key: global"))
	assert.Equal(t, "200 200 200 200 200 429", s.statuses(6), "another key is another limit")
	assert.Contains(t, s.log.String(),
		"reload: rule default: starts over with full buckets, because the key was ip and is global")
}

// TestALimiterThatDoesNotTakeTheNumbersIsReplaced: a limiter whose numbers were changed may not accept numbers that a
// new limiter would accept. In that case a new limiter replaces it.
func TestALimiterThatDoesNotTakeTheNumbersIsReplaced(t *testing.T) {
	log := "rules: [{name: a, rate: %d/h, algorithm: sliding-log, max_keys: 100}]"
	s := start(t, fmt.Sprintf(log, 2))
	s.change(fmt.Sprintf(log, 1))
	assert.Equal(t, "200 429", s.statuses(2))
	s.change(fmt.Sprintf(log, 3))
	assert.Equal(t, "200 200 429", s.statuses(3), "one of three is taken")
	assert.Contains(t, s.log.String(), "reload: rule a: sliding log 3/1h0m0s, was sliding log 1/1h0m0s; it has a new limiter, because "+
		"the limiter does not accept the new numbers")
}

func TestABadReloadKeepsTheOldFileAndSaysSo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	s := start(t, one)
	s.statuses(3)
	g := s.current.Load()
	s.write("rules: [{name: default, rat: 1/h}]")
	assert.Error(t, s.Reload())
	assert.Contains(t, s.log.String(), `weir.yaml:2:25: unknown key \"rat\": did you mean \"rate\"?`)
	s.write("listen: [127.0.0.1:0, " + taken.Addr().String() + "]\n" + rule("key: global"))
	assert.ErrorContains(t, s.Reload(), "the port is in use")
	s.write(rule("max_keys: 2147483647, algorithm: sliding-log"))
	assert.Error(t, s.Reload())
	require.NoError(t, os.Remove(s.path))
	assert.ErrorContains(t, s.Reload(), "there is no file")
	assert.Contains(t, s.log.String(), "reload failed: everything stays as it was")
	assert.Same(t, g, s.current.Load())
	assert.Equal(t, "200 200 429", s.statuses(3))
}

// TestAReloadThatFailsHalfwayIsUndone: if a reload fails after it has changed limits, it restores them.
func TestAReloadThatFailsHalfwayIsUndone(t *testing.T) {
	s := start(t, one)
	s.write("rules: [{name: default, rate: 1/h, burst: 50, max_keys: 100}, " +
		"{name: b, rate: 4000/h, algorithm: sliding-log, max_keys: 2147483647}]")
	err := s.Reload()
	require.ErrorContains(t, err, "rule b:")
	assert.ErrorAs(t, err, new(*LimiterError))
	assert.Equal(t, "200 200 200 200 200 429", s.statuses(6))
}

func TestTheFileIsWatched(t *testing.T) {
	s := start(t, one)
	s.statuses(5)
	s.write(rule("shadow: true"))
	s.waitFor("generation=1")
	assert.Equal(t, "200", s.statuses(1))
	s.write("rules: none")
	s.waitFor("reload failed")
	// This changes the file in place, but write replaces it.
	require.NoError(t, os.WriteFile(s.path, []byte("listen: 127.0.0.1:0\n"+one), 0o600))
	s.waitFor("generation=2")
	assert.Equal(t, "429", s.statuses(1))
}

// TestTheFileIsWatchedBehindLinks: weir.yaml is a link to a file behind the link ..data, as in Kubernetes. weir notices
// when ..data is replaced.
func TestTheFileIsWatchedBehindLinks(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "weir.yaml"), []byte("listen: 127.0.0.1:0\n"+text), 0o600))
		require.NoError(t, os.Symlink(name, filepath.Join(dir, "..tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", one)
	require.NoError(t, os.Symlink(filepath.Join("..data", "weir.yaml"), filepath.Join(dir, "weir.yaml")))
	s := startAt(t, filepath.Join(dir, "weir.yaml"))
	version("..2", rule("shadow: true"))
	s.waitFor("generation=1")
	version("..3", one)
	s.waitFor("generation=2")
}

func TestConnectionsOutliveAReload(t *testing.T) {
	s := start(t, one)
	conn, err := net.Dial("tcp", s.address())
	require.NoError(t, err)
	defer conn.Close()
	in := bufio.NewReader(conn)
	ask := func() int {
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		return resp.StatusCode
	}
	assert.Equal(t, 200, ask())
	address := s.address()
	// If the timeouts change, the port gets a new http.Server. The open connection stays with the previous http.Server.
	s.change("server: {idle_timeout: 1m, max_header_bytes: 1KiB}\n" + one)
	assert.Equal(t, 200, ask())
	s.change("server: {read_timeout: 1m}\n" + one)
	assert.Equal(t, 200, ask())
	assert.Equal(t, address, s.address())
	assert.Equal(t, "200 200 429", s.statuses(3))
}

func TestListenersComeAndGo(t *testing.T) {
	s := start(t, one)
	first := s.address()
	free := freeport.Address(t)
	s.change("listen: [127.0.0.1:0, " + free + "]\n" + one)
	s.get("/")
	resp, err := s.client.Get("http://" + free)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	s.change("listen: " + free + "\n" + one)
	assert.Equal(t, free, s.address())
	_, err = net.Dial("tcp", first)
	assert.Error(t, err)
	assert.Equal(t, "200 200 200 429", s.statuses(4))
	assert.Contains(t, s.log.String(), "reload: no longer listening on 127.0.0.1:0 (HTTP/1.1)")
}

// TestAReloadStormUnderLoad: during many requests, there are hundreds of reloads of every kind. No request fails, and
// exactly the tokens of one bucket are admitted.
func TestAReloadStormUnderLoad(t *testing.T) {
	const burst, storms = 2000, 300
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	text := func(i int) string {
		kinds := []string{
			"", "headers: both\n", "server: {idle_timeout: 1m}\n", "response: {body: json}\n", "trusted_proxies: 10.0.0.0/8\n",
			"routes: [{match: {path: /static/}, upstream: {url: \"" + upstream + "\", response_timeout: 5s}}]\n",
		}
		return kinds[i%len(kinds)] + "upstream: " + upstream + "\n" +
			"rules: [{name: default, rate: 1/m, burst: " + fmt.Sprint(burst) +
			", max_keys: 100, match: {path: /}}]\n"
	}
	s := start(t, text(0))
	ctx, done := context.WithCancel(t.Context())
	var admitted, refused atomic.Int64
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil || admitted.Load()+refused.Load() <= burst {
				resp, err := s.client.Get(s.Server.URL())
				if !assert.NoError(t, err) {
					return
				}
				_, err = io.Copy(io.Discard, resp.Body)
				assert.NoError(t, err)
				resp.Body.Close()
				switch resp.StatusCode {
				case 200:
					admitted.Add(1)
				case 429:
					refused.Add(1)
				default:
					t.Error(resp.Status)
				}
			}
		})
	}
	for i := range storms {
		s.change(text(i))
	}
	done()
	clients.Wait()
	assert.Equal(t, int64(burst), admitted.Load(), "refused: %d", refused.Load())
	assert.Positive(t, refused.Load())
}

func TestNothingIsReloadedWhileStopping(t *testing.T) {
	s := start(t, one)
	s.stop()
	assert.ErrorIs(t, s.Reload(), errStopped)
	assert.NotContains(t, s.log.String(), "reload failed", "nothing is wrong with the file")
}

// TestARequestAfterTheEndIsAborted: if a request was read just before its connection is cut off, the request is
// aborted.
func TestARequestAfterTheEndIsAborted(t *testing.T) {
	s := start(t, one)
	s.stop()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { s.ServeHTTP(httptest.NewRecorder(), r) })
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { s.decide(httptest.NewRecorder(), r) })
}

// TestAServerEndsWhileAnUpgradeIsUnderWay: a reload waits for an upgrade, and the server ends. The reload does not
// delay this end.
func TestAServerEndsWhileAnUpgradeIsUnderWay(t *testing.T) {
	s := start(t, one)
	s.life.turn <- struct{}{} // takes the turn, as an upgrade does
	reloaded := make(chan error, 1)
	go func() { reloaded <- s.Reload() }()
	s.stop()
	assert.ErrorIs(t, <-reloaded, errStopped)
}

// TestAReloadReportsOtherKeys: the log of a reload says that some requests have another key.
func TestAReloadReportsOtherKeys(t *testing.T) {
	s := start(t, "rules: [{name: a, rate: 1/h, key: path, match: {path: /b/}}]")
	s.change("rules: [{name: a, rate: 1/h, key: path, match: {path: /b/, case: sensitive}}]")
	assert.Contains(t, s.log.String(), "some requests now have another key")
}
