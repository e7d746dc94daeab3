package conformance

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// promises are the cases in which package limitertest looks for wrong decisions. This module does not require
// limitertest. So the test of each front provides a function that runs these cases: [Front.Promise].
var promises = []*Case{
	{Name: "promise/bucket", Promise: true,
		Expects: "package limitertest finds no fault: a key gets its tokens at the first instant, and never more"},
	{Name: "promise/stored", Promise: true, Stored: true, Expects: "the same, of a limit in a store"},
}

// A Subject is a front with one token bucket for each user. Requests may have any key and cost.
type Subject struct {
	env    *Env
	server Server

	mu   sync.Mutex
	sent int
}

// Subjects are the subjects of a promise case.
type Subjects struct {
	// Open starts a subject, which stops when tb ends.
	Open func(tb testing.TB, n Numbers) *Subject
	// InBubble says that the subjects use the simulated time of the bubble in which they are started.
	InBubble bool
	// Stored says that the subjects use the time of a store.
	Stored bool
}

// A PromiseFunc tests subjects with package limitertest.
type PromiseFunc func(*testing.T, Subjects)

func (f Front) promise(t *testing.T, k *Case) error {
	if f.Promise == nil {
		return errors.New("the front is not tested with package limitertest: set Front.Promise")
	}
	if err := f.checkStart(t, k); err != nil {
		return err
	}
	f.Promise(t, Subjects{
		Open:     func(tb testing.TB, n Numbers) *Subject { return f.subject(tb, k, n) },
		InBubble: f.simulates(k), Stored: k.Stored,
	})
	return nil
}

func (f Front) checkStart(t *testing.T, k *Case) error {
	server, err := f.Start(f.newEnv(t, k), promiseConfig(t, k, hourly(1)))
	if err == nil {
		server.Close()
	}
	return err
}

func promiseConfig(t *testing.T, k *Case, n Numbers) Config {
	c := Config{Limits: []Limit{{Name: "a", Key: User, Numbers: n, Cost: true, MaxKeys: 1 << 14, Stored: k.Stored}}}
	if k.Stored {
		c.Store, c.OnLoss, c.Nodes = startStore(t), Closed, 1
		c.Answer = 10 * time.Second // the machine may be busy, so this is the longest time that a front accepts
	}
	return c
}

// Nodes starts nodes that share a limit in a store.
func (f Front) Nodes(tb testing.TB, n Numbers, nodes int) (subjects []*Subject) {
	tb.Helper()
	t, ok := tb.(*testing.T)
	if !ok {
		tb.Fatalf("nodes for %T", tb)
	}
	k := &Case{Name: "promise/nodes", Promise: true, Stored: true}
	config := promiseConfig(t, k, n)
	for config.Nodes = nodes; len(subjects) < nodes; {
		subjects = append(subjects, f.start(t, k, config))
	}
	return subjects
}

func (f Front) subject(tb testing.TB, k *Case, n Numbers) *Subject {
	tb.Helper()
	t, ok := tb.(*testing.T)
	if !ok {
		tb.Fatalf("a subject for %T", tb)
	}
	return f.start(t, k, promiseConfig(t, k, n))
}

func (f Front) start(t *testing.T, k *Case, c Config) *Subject {
	t.Helper()
	env := f.newEnv(t, k)
	server, err := f.Start(env, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return &Subject{env: env, server: server}
}

// Ask sends a request. The user of the request is the key in hexadecimal digits, so the key may have any bytes. The
// result retryAfter is negative if a refusal does not say when to try again.
func (s *Subject) Ask(key string, cost uint64) (admitted bool, retryAfter time.Duration) {
	call := &Call{arrive: func() {}, mayAnswer: make(chan struct{})}
	close(call.mayAnswer)
	s.mu.Lock()
	s.sent++
	id := fmt.Sprintf("asked-%d", s.sent)
	s.mu.Unlock()
	call.request = Request{Client: "192.0.2.1", Path: "/", User: "k" + hex.EncodeToString([]byte(key)), Cost: cost, Free: cost == 0,
		Ends: Good, ID: id}
	s.env.mu.Lock()
	s.env.calls[id] = call
	s.env.mu.Unlock()
	a := s.server.Send(context.Background(), call.request)
	s.env.mu.Lock()
	delete(s.env.calls, id)
	s.env.mu.Unlock()
	if a.Err != nil || a.Failed {
		panic(fmt.Sprintf("no decision: %+v", a))
	}
	if !a.Admitted && a.RetryAfter == 0 {
		a.RetryAfter = -1
	}
	return a.Admitted, a.RetryAfter
}

// Now reads the clock of the limit. It works only if the limit uses neither the time of a bubble nor the time of a
// store.
func (s *Subject) Now() time.Time { return s.env.clock.Now() }

// Advance moves the clock that Now reads.
func (s *Subject) Advance(d time.Duration) { s.env.clock.Advance(d) }
