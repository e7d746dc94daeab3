package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// restartedFile names the rule file of a server that is a process of its own.
const restartedFile = "WEIR_TEST_RESTARTED"

// TestRestartedServer is a server of the test below, as a process of its own: it says where it listens, and works until
// SIGTERM.
func TestRestartedServer(t *testing.T) {
	path := os.Getenv(restartedFile)
	if path == "" {
		t.Skip("a process of TestRestartsUnderLoad runs this")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	file, err := config.Load(path)
	require.NoError(t, err)
	s, err := Start(Config{File: file, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	require.NoError(t, err)
	fmt.Println(s.URL())
	require.NoError(t, s.Run(ctx))
}

// A fleet is servers with one rule file, of which clients ask the newest.
type fleet struct {
	t       *testing.T
	path    string
	between sync.RWMutex // locked while there is no server
	url     string
	newest  *exec.Cmd
}

// add starts a server, which is the newest from then on.
func (f *fleet) add() {
	program, err := os.Executable()
	require.NoError(f.t, err)
	cmd := exec.CommandContext(f.t.Context(), program, "-test.run=^TestRestartedServer$")
	cmd.Env = append(os.Environ(), restartedFile+"="+f.path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(f.t, err)
	require.NoError(f.t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(f.t, err)
	f.url, f.newest = strings.TrimSpace(line), cmd
}

// upgrade starts a server beside the newest, and ends that when clients ask the new one.
func (f *fleet) upgrade() {
	before := f.newest
	next := &fleet{t: f.t, path: f.path}
	next.add()
	f.between.Lock()
	f.url, f.newest = next.url, next.newest
	f.between.Unlock()
	require.NoError(f.t, before.Process.Signal(syscall.SIGTERM))
	assert.NoError(f.t, before.Wait())
}

// restart ends the newest server by a signal, and then starts another.
func (f *fleet) restart(by syscall.Signal) {
	f.between.Lock()
	defer f.between.Unlock()
	require.NoError(f.t, f.newest.Process.Signal(by))
	err := f.newest.Wait()
	if by == syscall.SIGTERM {
		assert.NoError(f.t, err)
	} else {
		assert.ErrorContains(f.t, err, "killed")
	}
	f.add()
}

// present returns where the newest server listens.
func (f *fleet) present() string {
	f.between.RLock()
	defer f.between.RUnlock()
	return f.url
}

// TestRestartsUnderLoad: servers are restarted, upgraded and killed while clients ask for more than there is. In all
// they admit no more than one server would have, and answer with nothing but 200 and 429. Each of them is asked for
// more than a fresh bucket has, so one that had it would be seen.
func TestRestartsUnderLoad(t *testing.T) {
	const burst, rate, clients, rounds = 150, 10, 4, 3
	dir := t.TempDir()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "listen: 127.0.0.1:0\nstate: %s\n"+
		"rules: [{name: default, key: global, rate: %d/s, burst: %d, max_keys: 100}]\n", dir, rate, burst), 0o600))
	f := &fleet{t: t, path: path}
	f.add()
	began := time.Now()
	ctx, done := context.WithCancel(t.Context())
	var admitted, refused, broken atomic.Int64 // broken is without an answer: the server was killed, or gone already
	var asking sync.WaitGroup
	for range clients {
		asking.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				resp, err := client.Get(f.present())
				if err != nil {
					broken.Add(1)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body) // the status has come
				_ = resp.Body.Close()
				switch resp.StatusCode {
				case http.StatusOK:
					admitted.Add(1)
				case http.StatusTooManyRequests:
					refused.Add(1)
				default:
					assert.Fail(t, "neither admitted nor refused", resp.Status)
				}
			}
		})
	}
	exhausted := func() {
		until := admitted.Load() + refused.Load() + burst + burst/5
		require.Eventually(t, func() bool { return admitted.Load()+refused.Load() >= until }, time.Minute, time.Millisecond)
	}
	for range rounds {
		for _, next := range []func(){f.upgrade, func() { f.restart(syscall.SIGTERM) }, func() { f.restart(syscall.SIGKILL) }} {
			exhausted()
			next()
		}
	}
	exhausted()
	done()
	asking.Wait()
	apart := 30 * time.Millisecond // how far clocks of two processes may be
	most := burst + rate*(time.Since(began)+apart).Seconds()
	assert.LessOrEqual(t, float64(admitted.Load()), most)
	assert.GreaterOrEqual(t, admitted.Load()+broken.Load(), int64(burst))
	assert.Positive(t, refused.Load())
	require.NoError(t, f.newest.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, f.newest.Wait())
	t.Logf("admitted %d of at most %.1f, refused %d, without an answer %d", admitted.Load(), most, refused.Load(), broken.Load())
}
