package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/internal/testclock"
)

// A Case describes something that every front must do, as a client sees it.
type Case struct {
	Name    string // the name of the subtest, also in known.txt: "feature/case"
	Expects string // what must happen, as text for people
	Waits   bool   // requests wait, so that simulated time is needed
	Stored  bool   // needs a store, whose clock is the real one
	Files   bool   // needs a folder that several servers share
	Promise bool   // is run by Front.Promise, instead of Run
	Run     func(*C)
}

// Feature returns the feature to which the case belongs.
func (k *Case) Feature() string { name, _, _ := strings.Cut(k.Name, "/"); return name }

// Run runs the cases against a front and compares what happens with known.txt.
func Run(t *testing.T, f Front) {
	t.Helper()
	gaps, err := gapsOf(f.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Cases() {
		if f.Runs != nil && !f.Runs(k) {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			run := f.run
			if k.Promise {
				run = f.promise
			}
			if message := gaps[k.Name].judge(run(t, k)); message != "" {
				t.Error(message)
			}
		})
	}
}

// run runs a case. It returns nil if the front does what the case expects.
func (f Front) run(t *testing.T, k *Case) (err error) {
	if f.simulates(k) {
		synctest.Test(t, func(t *testing.T) { err = f.attempt(f.newEnv(t, k)) })
		return err
	}
	return f.attempt(f.newEnv(t, k))
}

func (f Front) simulates(k *Case) bool { return f.InBubble != nil && f.InBubble(k) }

// newEnv returns an Env with a clock that the suite moves, or without a clock for a case in simulated time.
func (f Front) newEnv(t *testing.T, k *Case) *Env {
	env := &Env{T: t, Case: k, calls: map[string]*Call{}}
	if !f.simulates(k) {
		env.clock = testclock.New()
	}
	return env
}

func (f Front) attempt(env *Env) (err error) {
	c := &C{env: env, front: f}
	defer c.close()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *failure:
			err = r
		default:
			panic(r)
		}
	}()
	env.Case.Run(c)
	return nil
}

// A failure is the panic of a case whose expectation is not met.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// C is a running case.
type C struct {
	env     *Env
	front   Front
	nodes   []*Node
	sent    int
	running sync.WaitGroup // goroutines of calls
}

// Errorf ends the case. Package require calls it at the first expectation that is not met.
func (c *C) Errorf(format string, args ...any) {
	panic(&failure{errors.New(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))})
}

// FailNow is never reached: Errorf ends the case.
func (c *C) FailNow() { c.Errorf("failed") }

// Fatalf ends the case, because an expectation is not met.
func (c *C) Fatalf(format string, args ...any) { c.Errorf(format, args...) }

// Start starts a server with limits.
func (c *C) Start(limits ...Limit) *Node { return c.StartWith(Config{Limits: limits}) }

// StartWith starts a server with a config.
func (c *C) StartWith(config Config) *Node {
	n, err := c.try(config)
	if err != nil {
		panic(&failure{fmt.Errorf("the front does not start: %w", err)})
	}
	return n
}

func (c *C) try(config Config) (*Node, error) {
	server, err := c.front.Start(c.env, config)
	if err != nil {
		return nil, err
	}
	n := &Node{c: c, server: server, config: config}
	c.nodes = append(c.nodes, n)
	return n, nil
}

// Advance moves the time.
func (c *C) Advance(d time.Duration) { c.env.advance(d) }

// settle waits until every goroutine of the bubble is blocked. Outside a bubble, it does nothing.
func (c *C) settle() {
	if c.env.InBubble() {
		synctest.Wait()
	}
}

// Soon waits until a condition is true. Outside a bubble, it checks the condition repeatedly. The message says what a
// failure means.
func (c *C) Soon(message string, condition func() bool) {
	c.settle()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.Fatalf("%s", message)
		}
	}
}

func (c *C) close() {
	c.env.mu.Lock()
	for _, call := range c.env.calls {
		call.end()
		call.leave()
	}
	c.env.mu.Unlock()
	c.running.Wait()
	for _, n := range c.nodes {
		n.stop()
	}
}

// A Node is a server of the front under test.
type Node struct {
	c       *C
	server  Server
	config  Config
	stopped bool
}

func (n *Node) stop() {
	if !n.stopped {
		n.stopped = true
		n.server.Close()
	}
}

// Stop stops the server.
func (n *Node) Stop() { n.stop() }

// Begin sends a request, which stays at the server until the case ends it.
func (n *Node) Begin(r Request) *Call {
	c := n.c
	c.sent++
	r.ID = fmt.Sprintf("request-%d", c.sent)
	if r.Client == "" {
		r.Client = "192.0.2.1"
	}
	if r.Path == "" {
		r.Path = "/"
	}
	if r.Ends == "" {
		r.Ends = Good
	}
	ctx, leave := context.WithCancel(context.Background())
	call := &Call{c: c, request: r, leave: leave, arrived: make(chan struct{}), mayAnswer: make(chan struct{}), done: make(chan struct{})}
	call.arrive = sync.OnceFunc(func() { close(call.arrived) })
	call.end = sync.OnceFunc(func() { close(call.mayAnswer) })
	c.env.mu.Lock()
	c.env.calls[r.ID] = call
	c.env.mu.Unlock()
	c.running.Go(func() {
		defer close(call.done)
		defer leave()
		call.answer = n.server.Send(ctx, r)
	})
	return call
}

// Send sends a request and returns the answer.
func (n *Node) Send(r Request) Answer {
	call := n.Begin(r)
	answer := call.End()
	n.c.settle()
	if errors.Is(answer.Err, ErrUnsupported) {
		panic(&failure{answer.Err})
	}
	if answer.Err != nil && r.Ends != Broken {
		n.c.Fatalf("a request got no answer: %v", answer.Err)
	}
	return answer
}

// Admitted sends a request several times, and returns how often it was admitted.
func (n *Node) Admitted(times int, r Request) (admitted int) {
	for range times {
		if n.Send(r).Admitted {
			admitted++
		}
	}
	return admitted
}

// Admits sends a request several times, one after the other, and expects that it is admitted each time.
func (n *Node) Admits(times int, r Request) {
	for i := range times {
		if a := n.Send(r); !a.Admitted {
			n.c.Fatalf("of %d requests that have their tokens number %d is refused: %+v, %+v", times, i+1, r, a)
		}
	}
}

// Refuses expects that a request is refused, and returns the answer.
func (n *Node) Refuses(r Request) Answer {
	a := n.Send(r)
	if a.Admitted || a.Failed {
		n.c.Fatalf("a request without tokens is not refused: %+v, %+v", r, a)
	}
	return a
}

// Exactly expects that a request is admitted a number of times, and then refused.
func (n *Node) Exactly(times int, r Request) {
	n.Admits(times, r)
	n.Refuses(r)
}

// Reload expects that the server accepts a configuration.
func (n *Node) Reload(limits ...Limit) {
	config := n.config
	config.Limits = limits
	n.reload(config)
}

// ReloadIn expects that the server accepts a new configuration. The configuration moves the limits to the files of a
// folder, or to memory if dir is "".
func (n *Node) ReloadIn(dir string) {
	config := n.config
	config.Dir = dir
	n.reload(config)
}

func (n *Node) reload(config Config) {
	if err := n.server.Reload(config); err != nil {
		panic(&failure{fmt.Errorf("the front does not take the change: %w", err)})
	}
	n.config = config
}
