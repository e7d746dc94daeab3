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

// A fleet is several weirs with one rule file. Clients ask the newest of them.
type fleet struct {
	t       *testing.T
	path    string
	socket  *os.File     // that each weir inherits, as from systemd; nil if they listen by themselves
	between sync.RWMutex // locked while there is no weir
	url     atomic.Value // string: where the newest listens
	process *process     // the newest
	log     *started     // where it logs
}

// add starts a weir, which is the newest from then on.
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

// startBeside starts another weir next to the newest, and ends the older one when clients ask the new one.
func (f *fleet) startBeside() {
	before := f.process
	f.add()
	before.signal(syscall.SIGTERM)
	assert.Zero(f.t, before.wait())
}

// upgrade has the newest start its successor, and waits until it has ended.
func (f *fleet) upgrade() {
	before := f.process
	before.signal(syscall.SIGUSR2)
	f.process = f.log.successor("upgraded")
	assert.Zero(f.t, before.wait())
}

// restart ends the newest weir by a signal, and then starts another. Clients wait meanwhile, unless the socket stays.
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

// present returns where the newest weir listens.
func (f *fleet) present() string {
	f.between.RLock()
	defer f.between.RUnlock()
	return f.url.Load().(string)
}

const fleetBurst, fleetRate = 150, 10

// A crowd is clients that ask a fleet for more than there is. Half of them keep their connections.
type crowd struct {
	*fleet
	method            string
	began             time.Time // before the first request
	first             time.Time // after the first answer
	admitted, refused atomic.Int64
	broken            atomic.Int64 // without an answer
	done              func()
}

// crowded starts a fleet and its crowd. more has the settings of the rule file other than the limit and its state.
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

// ask sends a request and counts the answer, which it returns the status of; 0 for none.
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
	_, _ = io.Copy(io.Discard, answer.Body) // the status has come
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

// exhaust waits until the newest weir has been asked for more than a fresh bucket has: one that had it would be seen.
func (c *crowd) exhaust() {
	until := c.admitted.Load() + c.refused.Load() + fleetBurst + fleetBurst/5
	require.Eventually(c.t, func() bool { return c.admitted.Load()+c.refused.Load() >= until }, time.Minute, time.Millisecond)
}

// check ends the crowd and the fleet, and compares what all weirs have admitted together with the limit. If every
// request has an answer, they have admitted all available tokens.
func (c *crowd) check() {
	c.exhaust()
	c.done()
	var last time.Time // before a request that was refused
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for status := http.StatusOK; status != http.StatusTooManyRequests; {
		last = time.Now()
		status = c.ask(client)
	}
	apart := 30 * time.Millisecond // how far clocks of two processes may be
	most := fleetBurst + fleetRate*(time.Since(c.began)+apart).Seconds()
	assert.LessOrEqual(c.t, float64(c.admitted.Load()), most)
	least := fleetBurst + fleetRate*(last.Sub(c.first)-apart).Seconds() - 1 - float64(c.broken.Load())
	assert.GreaterOrEqual(c.t, float64(c.admitted.Load()), least)
	assert.Positive(c.t, c.refused.Load())
	c.end(syscall.SIGTERM)
	c.t.Logf("admitted %d of %.1f to %.1f, refused %d, without an answer %d", c.admitted.Load(), least, most,
		c.refused.Load(), c.broken.Load())
}

// TestRestartsUnderLoad: weirs are restarted, started concurrently and killed while clients ask for more than
// there is. In all they admit no more than one would have, and answer with nothing but 200 and 429. (A GET whose weir
// is killed between the decision and the answer would be sent again, and its token be counted nowhere.)
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

// TestUpgradesUnderLoad: ten times a weir hands its sockets to its successor while clients ask for more than there is.
// Every request has its answer, also those that must not be sent twice.
func TestUpgradesUnderLoad(t *testing.T) {
	c := crowded(t, &fleet{}, http.MethodPost, "listen: 127.0.0.1:0")
	for range 10 {
		c.exhaust()
		c.upgrade()
	}
	c.check()
	assert.Zero(t, c.broken.Load())
}

// TestRestartsWithASocketThatStays: ten times a weir is restarted whose socket another process holds, as systemd does.
// No connection is refused or broken off: those that come meanwhile wait. A client whose kept connection is closed
// sends a GET again.
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
