package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A fleet is several weir processes with one rule file. Clients use the newest process.
type fleet struct {
	t       *testing.T
	path    string
	socket  *os.File     // the socket that each process inherits, as from systemd; nil if each opens a socket
	between sync.RWMutex // locked while no process serves
	url     atomic.Value // string: the URL of the newest process
	process *process     // the newest process
	log     *started     // the log of the newest process
}

func (f *fleet) add() {
	cmd := exec.Command(build(f.t), "serve", f.path)
	if f.socket != nil {
		cmd = exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, build(f.t), "serve", f.path)
		cmd.Env = append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES=weir.socket")
		cmd.ExtraFiles = []*os.File{f.socket}
	}
	f.log = startCommand(f.t, cmd)
	f.process = processOf(f.t, f.log.Process.Pid)
	f.url.Store(f.log.until(`msg=listening url=(\S+) for=clients`)[0])
}

// startBeside starts another process next to the newest one. When clients use the new process, startBeside ends the
// other.
func (f *fleet) startBeside() {
	before := f.process
	f.add()
	before.signal(syscall.SIGTERM)
	assert.Zero(f.t, before.wait())
}

// upgrade makes the newest process start its successor. It waits until the newest process has ended.
func (f *fleet) upgrade() {
	before := f.process
	before.signal(syscall.SIGUSR2)
	f.process = f.log.successor("upgraded")
	assert.Zero(f.t, before.wait())
}

// restart ends the newest process with a signal and starts another process. In between, clients wait, unless the socket
// stays open.
func (f *fleet) restart(by syscall.Signal) {
	if f.socket == nil {
		f.between.Lock()
		defer f.between.Unlock()
	}
	f.end(by)
	f.add()
}

func (f *fleet) end(by syscall.Signal) {
	f.process.signal(by)
	if status := f.process.wait(); by == syscall.SIGTERM {
		assert.Zero(f.t, status)
	} else {
		assert.Equal(f.t, by, status.Signal())
	}
}

func (f *fleet) present() string {
	f.between.RLock()
	defer f.between.RUnlock()
	return f.url.Load().(string)
}

const fleetBurst, fleetRate = 150, 10

// A crowd is the clients of a fleet. They send more requests than the limit permits. Half of them keep their
// connections.
type crowd struct {
	*fleet
	method            string
	began             time.Time // time before the first request
	first             time.Time // time after the first answer
	admitted, refused atomic.Int64
	broken            atomic.Int64 // requests without an answer
	done              func()
}

// crowded starts a fleet and its crowd. The parameter more has further settings for the rule file.
func crowded(t *testing.T, f *fleet, method, more string) *crowd {
	t.Helper()
	adoptOrphans(t)
	f.t = t
	f.path = file(t, "weir.yaml", fmt.Sprintf("%s\nstate: %s\nrules: [{name: default, key: global, rate: %d/s, burst: %d, "+
		"max_keys: 100}]\n", more, t.TempDir(), fleetRate, fleetBurst))
	f.add()
	c := &crowd{fleet: f, method: method, began: time.Now()}
	c.ask(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	c.first = time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for n := range 4 {
		asking.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: n%2 == 0}}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				c.ask(client)
			}
		})
	}
	c.done = func() {
		cancel()
		asking.Wait()
	}
	t.Cleanup(c.done)
	return c
}

// ask sends a request and counts the answer. It returns the status of the answer, or 0 if there is none.
func (c *crowd) ask(client *http.Client) int {
	r, err := http.NewRequest(c.method, c.present(), nil)
	if err != nil {
		panic(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		c.broken.Add(1)
		c.t.Log("no answer:", err)
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body) // the status is known already
	_ = answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		c.admitted.Add(1)
	case http.StatusTooManyRequests:
		c.refused.Add(1)
	default:
		assert.Fail(c.t, "neither admitted nor refused", answer.Status)
	}
	return answer.StatusCode
}

// exhaust waits until the newest process has received more requests than a full bucket has tokens. If the process had a
// new bucket, the test would notice it.
func (c *crowd) exhaust() {
	until := c.admitted.Load() + c.refused.Load() + fleetBurst + fleetBurst/5
	require.Eventually(c.t, func() bool { return c.admitted.Load()+c.refused.Load() >= until }, time.Minute, time.Millisecond)
}

// check ends the crowd and the fleet. It then compares the number of all admitted requests with the limit. If every
// request has got an answer, all tokens that were available must have been used.
func (c *crowd) check() {
	c.exhaust()
	c.done()
	var last time.Time // time before the last request that was refused
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for status := http.StatusOK; status != http.StatusTooManyRequests; {
		last = time.Now()
		status = c.ask(client)
	}
	apart := 30 * time.Millisecond // how far the clocks of two processes may differ
	most := fleetBurst + fleetRate*(time.Since(c.began)+apart).Seconds()
	assert.LessOrEqual(c.t, float64(c.admitted.Load()), most)
	least := fleetBurst + fleetRate*(last.Sub(c.first)-apart).Seconds() - 1 - float64(c.broken.Load())
	assert.GreaterOrEqual(c.t, float64(c.admitted.Load()), least)
	assert.Positive(c.t, c.refused.Load())
	c.end(syscall.SIGTERM)
	c.t.Logf("admitted %d of %.1f to %.1f, refused %d, without an answer %d", c.admitted.Load(), least, most,
		c.refused.Load(), c.broken.Load())
}

// TestRestartsUnderLoad: processes are restarted, killed, or run at the same time. Together they admit no more than one
// process would. Every answer is 200 or 429.
//
// The requests are not GETs. After a kill, a client would send a GET again, and the test would miss the token of the
// first attempt.
func TestRestartsUnderLoad(t *testing.T) {
	c := crowded(t, &fleet{}, http.MethodPost, "listen: 127.0.0.1:0")
	for range 3 {
		for _, next := range []func(){
			c.startBeside, func() { c.restart(syscall.SIGTERM) }, func() { c.restart(syscall.SIGKILL) },
		} {
			c.exhaust()
			next()
		}
	}
	c.check()
}

// TestUpgradesUnderLoad: processes hand their sockets to successors under load. Every request gets an answer, even
// requests that must not be sent twice.
func TestUpgradesUnderLoad(t *testing.T) {
	c := crowded(t, &fleet{}, http.MethodPost, "listen: 127.0.0.1:0")
	for range 10 {
		c.exhaust()
		c.upgrade()
	}
	c.check()
	assert.Zero(t, c.broken.Load())
}

// TestRestartsWithASocketThatStays: another process keeps the socket open, as systemd does, while weir restarts. No
// connection is refused or broken off. If a kept connection closes, its client sends the GET again.
func TestRestartsWithASocketThatStays(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	defer socket.Close()
	c := crowded(t, &fleet{socket: socket}, http.MethodGet, "listen: "+l.Addr().String())
	for range 10 {
		c.exhaust()
		c.restart(syscall.SIGTERM)
	}
	c.check()
	assert.Zero(t, c.broken.Load())
}
