package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
)

// These are the numbers in the section "Several machines" of docs/budgets.md.
const (
	machines  = 4
	clients   = 64
	perMinute = 10_000
	held      = 200
	overdraft = 8
)

// A machineCase is an event that happens to four machines. They share one limit, and are under full load.
type machineCase struct {
	name  string
	store string // what happens to the store; "" for nothing
	kill  bool   // a machine is killed in the middle of the run
	// shares says that the store is lost. By docs/distributed.md, two terms are then added to the bound. The first is
	// the shares of all nodes, which together are one burst. The second is the tokens that the rate gives while the
	// store comes back.
	shares bool
	// forgets says that the store forgets its keys. Then a burst is added to the bound, and the tokens that holds in
	// flight give back.
	forgets bool
}

// TestMachinesKeepTheBound runs four programs, a real Redis server and 64 clients. Whatever happens, the settled costs
// stay within the documented bound. Some requests cost more than their hold, and the clients of some requests give up.
func TestMachinesKeepTheBound(t *testing.T) {
	installed(t, "redis-server")
	for _, c := range []machineCase{
		{name: "nothing happens"},
		{name: "a machine is killed", kill: true},
		{name: "the store stops for a second", store: "stop", shares: true},
		{name: "the store is wiped", store: "wipe", forgets: true},
		{name: "the store dies and comes back empty", store: "restart", shares: true, forgets: true},
		{name: "a machine is killed while the store stops", store: "stop", kill: true, shares: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newMachines(t, c)
			w.run()
			settled, bound := w.settled(), w.bound()
			t.Logf("| %s | %d | %d | %d |", c.name, len(w.asked), settled, bound)
			assert.LessOrEqual(t, settled, bound)
		})
	}
}

// asking is a request that has reached the model.
type asking struct {
	begin, end time.Time
	usage      uint64
	outcome    string // "answered", "given up" or "broken"; "" until then
}

// machineWorld has the machines and their store. It also has a model that knows the cost of each request.
type machineWorld struct {
	t        *testing.T
	c        machineCase
	port     string
	redis    *exec.Cmd
	programs []*started
	urls     []string
	begin    time.Time
	wiped    [2]time.Time // begin and end of the time in which keys may have been forgotten

	mu      sync.Mutex
	asked   map[string]*asking
	refused int
}

func newMachines(t *testing.T, c machineCase) *machineWorld {
	w := &machineWorld{t: t, c: c, asked: map[string]*asking{}}
	w.port = strconv.Itoa(freeport.Number(t))
	w.redis = runRedis(w.t, w.port)
	t.Cleanup(func() { _ = w.redis.Process.Kill() })
	model := httptest.NewServer(http.HandlerFunc(w.model))
	t.Cleanup(model.Close)
	timeout := "5s" // long, so that the store does not count as lost on a busy machine
	if c.shares {
		timeout = "100ms"
	}
	rules := file(t, "weir.yaml", fmt.Sprintf(`listen: 127.0.0.1:0
upstream: %s
store: {url: "redis://127.0.0.1:%s", nodes: %d, timeout: %s}
rules: [{name: tokens, key: global, rate: %d/m, tokens: {estimate: %d}}]
`, model.URL, w.port, machines, timeout, perMinute, held))
	for range machines {
		s := startProgram(t, "serve", rules)
		w.urls = append(w.urls, s.until(`msg=listening url=(\S+) for=clients`)[0])
		go func() { _, _ = io.Copy(io.Discard, s.stderr) }()
		w.programs = append(w.programs, s)
	}
	return w
}

// runRedis starts a Redis server on a port. A server that was killed may have had the same port.
func runRedis(t *testing.T, port string) *exec.Cmd {
	t.Helper()
	redis := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	require.NoError(t, redis.Start())
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	}, time.Minute, time.Millisecond)
	return redis
}

// model answers a request. The usage of the answer is in a field of the request. Without this field, model never
// answers.
func (w *machineWorld) model(rw http.ResponseWriter, r *http.Request) {
	usage, err := strconv.ParseUint(r.Header.Get("X-Usage"), 10, 64)
	a := &asking{begin: time.Now(), usage: usage}
	w.mu.Lock()
	w.asked[r.Header.Get("X-Id")] = a
	w.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when its client has gone
	if err != nil {                    // the answer waits until its client has gone
		<-r.Context().Done()
		return
	}
	select {
	case <-time.After(time.Duration(5+usage/10) * time.Millisecond):
	case <-r.Context().Done():
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(rw, `{"usage":{"prompt_tokens":0,"completion_tokens":%d,"total_tokens":%d}}`, usage, usage)
}

// run makes the clients use most of the limit, and then causes the event of the case. It ends when the clients were
// refused many times after that.
func (w *machineWorld) run() {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.begin = time.Now()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { w.client(ctx, i) })
	}
	w.until(func() bool { return w.settled() > perMinute*7/10 })
	w.happens()
	before := w.refusals()
	w.until(func() bool { return w.refusals() > before+10*clients })
	cancel()
	all.Wait()
}

func (w *machineWorld) until(is func() bool) {
	require.Eventually(w.t, is, 2*time.Minute, 20*time.Millisecond)
}

func (w *machineWorld) refusals() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

func (w *machineWorld) happens() {
	if w.c.kill {
		assert.NoError(w.t, w.programs[machines-1].Process.Kill())
	}
	w.wiped[0] = time.Now()
	switch w.c.store {
	case "stop":
		assert.NoError(w.t, w.redis.Process.Signal(syscall.SIGSTOP))
		time.Sleep(time.Second)
		assert.NoError(w.t, w.redis.Process.Signal(syscall.SIGCONT))
	case "wipe":
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:" + w.port}, DisableCache: true})
		if assert.NoError(w.t, err) {
			assert.NoError(w.t, client.Do(context.Background(), client.B().Flushall().Build()).Error())
			client.Close()
		}
	case "restart":
		assert.NoError(w.t, w.redis.Process.Kill())
		_ = w.redis.Wait() // returns an error, because the server was killed
		time.Sleep(time.Second)
		w.redis = runRedis(w.t, w.port)
	}
	w.wiped[1] = time.Now()
}

func (w *machineWorld) client(ctx context.Context, number int) {
	random := rand.New(rand.NewPCG(uint64(number), 1))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%d-%d", number, i)
		usage, limited, cancel := strconv.FormatUint(20+random.Uint64N(held-19), 10), context.Background(), func() {}
		switch random.IntN(10) {
		case 0:
			usage = strconv.FormatUint(held+random.Uint64N(held), 10)
		case 1:
			usage = "none"
			limited, cancel = context.WithTimeout(limited, time.Duration(20+random.IntN(60))*time.Millisecond)
		}
		status := w.ask(limited, client, w.urls[(number+i)%machines], id, usage)
		cancel()
		if status == http.StatusTooManyRequests {
			w.mu.Lock()
			w.refused++
			w.mu.Unlock()
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (w *machineWorld) ask(ctx context.Context, client *http.Client, url, id, usage string) (status int) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{"messages":[]}`))
	if !assert.NoError(w.t, err) {
		return 0
	}
	r.Header.Set("X-Id", id)
	r.Header.Set("X-Usage", usage)
	outcome := "broken"
	resp, err := client.Do(r)
	if err == nil {
		status = resp.StatusCode
		text, failed := io.ReadAll(resp.Body)
		resp.Body.Close()
		if failed == nil && status == http.StatusOK && bytes.Contains(text, []byte("usage")) {
			outcome = "answered"
		}
	} else if ctx.Err() != nil {
		outcome = "given up"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.asked[id]; a != nil {
		a.end, a.outcome = time.Now(), outcome
	}
	return status
}

// cost returns the cost with which a request was settled. It is the request's usage, or its hold if its client gave up
// before the answer. If the machine of the request was killed, both are possible, and cost returns the smaller number.
func (a *asking) cost() uint64 {
	switch a.outcome {
	case "answered":
		return a.usage
	case "given up":
		return held
	}
	return min(a.usage, held)
}

func (w *machineWorld) settled() (sum uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.asked {
		sum += a.cost()
	}
	return sum
}

// bound returns the bound of docs/distributed.md: burst + rate*T + O + N*D + H + E, and the terms for events.
//
//   - T is the time from the start of the run to its last request.
//   - O is for tokens that machines have in hand when T begins, and H for requests in flight at that time. Both are 0,
//     because the key is new.
//   - N*D is the overdraft of all machines.
//   - E is the number of tokens that requests cost beyond their holds.
func (w *machineWorld) bound() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	const perSecond = perMinute / 60.0
	last := w.begin
	beyond, givenBack := uint64(0), uint64(0)
	for _, a := range w.asked {
		if a.begin.After(last) {
			last = a.begin
		}
		beyond += a.cost() - min(a.cost(), held)
		if !a.begin.After(w.wiped[1]) && !a.end.Before(w.wiped[0]) {
			givenBack += held - min(a.cost(), held)
		}
	}
	bound := perMinute + perSecond*last.Sub(w.begin).Seconds() + machines*overdraft + float64(beyond)
	if w.c.shares {
		bound += perMinute + perSecond*(250+100)/1000 // until the last node notices the return, and a round trip
	}
	if w.c.forgets {
		bound += perMinute + float64(givenBack)
	}
	return uint64(bound)
}
