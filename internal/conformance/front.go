package conformance

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/internal/testclock"
)

// ErrUnsupported is the error of a front that has no words for what a case asks for.
var ErrUnsupported = errors.New("not supported")

// A Front is one way to put weir before a server.
type Front struct {
	Name string // one of Fronts
	// InBubble says whether a case runs in simulated time (testing/synctest), in which nothing of the front may wait
	// for a socket. A nil InBubble is never.
	InBubble func(*Case) bool
	// Runs says which cases the test runs, if another test runs the others. A nil Runs is all.
	Runs func(*Case) bool
	// Start starts a front that limits requests as the config says.
	Start func(*Env, Config) (Server, error)
	// Promise runs the cases of promises. A nil Promise fails them.
	Promise PromiseFunc

	store func() *Store // for a front that uses none
}

// A Server is a front that was started. The suite calls Send from many goroutines, the rest from one.
type Server interface {
	// Send sends a request and returns the answer when it is over. The client goes away when the context is done.
	Send(context.Context, Request) Answer
	// Reload changes the configuration. After an error it is what it was.
	Reload(Config) error
	// Close stops the server, when all requests are over.
	Close()
}

// An Env is what a Server runs in.
type Env struct {
	T     *testing.T
	Case  *Case
	clock *testclock.Clock // nil in a bubble

	mu    sync.Mutex
	calls map[string]*Call
}

// InBubble reports whether the case runs in simulated time.
func (e *Env) InBubble() bool { return e.clock == nil }

// Now is the clock of the limits.
func (e *Env) Now() time.Time {
	if e.InBubble() {
		return time.Now()
	}
	return e.clock.Now()
}

func (e *Env) advance(d time.Duration) {
	if e.InBubble() {
		time.Sleep(d)
		synctest.Wait()
		return
	}
	e.clock.Advance(d)
}

// Serve is the server behind the front: it takes as long as the case wants, and returns the request, which says how to
// answer. If the client goes away meanwhile it returns the error of the context.
func (e *Env) Serve(ctx context.Context, id string) (Request, error) {
	e.mu.Lock()
	call := e.calls[id]
	e.mu.Unlock()
	if call == nil {
		return Request{}, errors.New("conformance: no such request: " + id)
	}
	call.arrive()
	select {
	case <-call.let:
		return call.request, nil
	case <-ctx.Done():
		return call.request, ctx.Err()
	}
}

// A Call is a request under way.
type Call struct {
	c       *C
	request Request
	leave   context.CancelFunc
	arrived chan struct{} // closed when the server has the request
	arrive  func()
	let     chan struct{} // closed when the server may answer
	end     func()
	over    chan struct{} // closed when there is an answer
	answer  Answer
}

// usualPatience is how long the suite waits for what must happen. Only a failure takes so long.
const usualPatience = 20 * time.Second

// patience is that time, for a test of the suite itself.
var patience = usualPatience

// Arrived waits until the server has the request, and reports whether it has. It has not if there is an answer before.
func (call *Call) Arrived() bool {
	select {
	case <-call.arrived:
		return true
	case <-call.over:
	case <-time.After(patience):
	}
	select {
	case <-call.arrived:
		return true
	default:
		return false
	}
}

// End has the server answer, and waits for the answer.
func (call *Call) End() Answer {
	call.end()
	return call.Answer()
}

// Leave has the client go away, and waits until it has gone.
func (call *Call) Leave() {
	call.leave()
	call.Answer()
	call.c.settle()
}

// Answer waits for the answer.
func (call *Call) Answer() Answer {
	select {
	case <-call.over:
	case <-time.After(patience):
		call.c.Fatalf("a request got no answer: %+v", call.request)
	}
	return call.answer
}

// Waits reports whether the request neither has an answer nor has reached the server. Only in a bubble.
func (call *Call) Waits() bool {
	synctest.Wait()
	select {
	case <-call.over:
		return false
	case <-call.arrived:
		return false
	default:
		return true
	}
}
