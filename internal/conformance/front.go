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

// ErrUnsupported is the error of a front that cannot express what a case asks for.
var ErrUnsupported = errors.New("not supported")

// A Front is one way to put weir in front of a server.
type Front struct {
	Name string // one of Fronts
	// InBubble reports whether a case runs in simulated time (testing/synctest). In simulated time, no part of the
	// front may wait for a socket. If InBubble is nil, no case runs in simulated time.
	InBubble func(*Case) bool
	// Runs reports whether this test runs a case. Another test must run the remaining cases. If Runs is nil, this test
	// runs all cases.
	Runs func(*Case) bool
	// Start starts a front with a configuration.
	Start func(*Env, Config) (Server, error)
	// Promise runs the cases of package limitertest ([Case.Promise]). If the field Promise is nil, these cases fail.
	Promise PromiseFunc

	store func() *Store // for a front that uses no store
}

// A Server is a front that was started. The suite calls Send from many goroutines, and the other methods from one
// goroutine.
type Server interface {
	// Send sends a request and returns its answer. If the context is done before the answer comes, the client
	// disconnects.
	Send(context.Context, Request) Answer
	// Reload changes the configuration. If it returns an error, the configuration is unchanged.
	Reload(Config) error
	// Close stops the server after all requests have ended.
	Close()
}

// An Env is the environment of a Server.
type Env struct {
	T     *testing.T
	Case  *Case
	clock *testclock.Clock // nil in a bubble

	mu    sync.Mutex
	calls map[string]*Call
}

// InBubble reports whether the case runs in simulated time.
func (e *Env) InBubble() bool { return e.clock == nil }

// Now reads the clock of the limits.
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

// Serve is called by the server behind the front for each request. It takes as long as the case wants. Then it returns
// the request, which says how the server must answer. If the client disconnects earlier, Serve returns the error of the
// context.
func (e *Env) Serve(ctx context.Context, id string) (Request, error) {
	e.mu.Lock()
	call := e.calls[id]
	e.mu.Unlock()
	if call == nil {
		return Request{}, errors.New("conformance: no such request: " + id)
	}
	call.arrive()
	select {
	case <-call.mayAnswer:
		return call.request, nil
	case <-ctx.Done():
		return call.request, ctx.Err()
	}
}

// A Call is a request under way.
type Call struct {
	c         *C
	request   Request
	leave     context.CancelFunc
	arrived   chan struct{} // closed when the server has the request
	arrive    func()
	mayAnswer chan struct{} // closed when the server may answer
	end       func()
	done      chan struct{} // closed when there is an answer
	answer    Answer
}

// usualPatience is the longest time for which the suite waits for something that must happen. Only a failure takes that
// long.
const usualPatience = 20 * time.Second

// patience is usualPatience, or a shorter time in a test of the suite itself.
var patience = usualPatience

// Arrived waits until the server has the request, and then returns true. If the client gets an answer before that,
// Arrived returns false.
func (call *Call) Arrived() bool {
	select {
	case <-call.arrived:
		return true
	case <-call.done:
	case <-time.After(patience):
	}
	select {
	case <-call.arrived:
		return true
	default:
		return false
	}
}

// End lets the server answer, and waits for the answer.
func (call *Call) End() Answer {
	call.end()
	return call.Answer()
}

// Leave makes the client disconnect, and waits until the call has ended.
func (call *Call) Leave() {
	call.leave()
	call.Answer()
	call.c.settle()
}

// Answer waits for the answer.
func (call *Call) Answer() Answer {
	select {
	case <-call.done:
	case <-time.After(patience):
		call.c.Fatalf("a request got no answer: %+v", call.request)
	}
	return call.answer
}

// Waits reports whether the request neither has an answer nor has reached the server. It works only in a bubble.
func (call *Call) Waits() bool {
	synctest.Wait()
	select {
	case <-call.done:
		return false
	case <-call.arrived:
		return false
	default:
		return true
	}
}
