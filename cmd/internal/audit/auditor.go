package audit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
)

// A Request is a request to the server. It is sent exactly as its fields say, because the audit also tries unusual
// spellings.
type Request struct {
	Method, Target, Host, Proto string
	Fields                      [][2]string
	From                        string // the address from which it is sent; "" for any
	Times                       int    // how often it is sent in one packet; 0 means once
}

// An Answer is a server's answer to a Request.
type Answer struct {
	Status     int
	Header     http.Header
	Length     int
	Sent, Done time.Time
	Refused    int // for a Request that was sent several times: how many were refused
}

// A Client sends a request and reads the answer. It is called concurrently.
type Client interface {
	Do(context.Context, Request) (Answer, error)
}

// Options are the settings of an audit.
type Options struct {
	Requests int           // at most this many; 1 or more
	Time     time.Duration // how long the audit may take, approximately
	// Refused has the statuses of refusals. If it is empty, the audit finds them.
	Refused []int
	// Progress is called with the progress of the audit, from 0 to 1. It may be nil.
	Progress func(phase string, done float64)
}

// ErrStopped means that the audit stopped early, to avoid harm.
var ErrStopped = errors.New("stopped")

// refusals has the statuses that servers use for refusals, the most common first. An error with another status is not a
// refusal, but an error of the server.
var refusals = []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusForbidden, 420, 509}

type auditor struct {
	Options
	client       Client
	plainRequest Request
	begin        time.Time

	mu       sync.Mutex
	sent     int
	baseline struct{ status, length int } // the status of an answer that is not a refusal, and the length of its body
	refused  int                          // the status of refusals; 0 while no refusal was seen
	log      []Exchange
	burst    int // number of requests at the start of the log that were sent together
	err      error
}

// An Exchange is a plain request and its answer.
type Exchange struct {
	Answer
	Allowed bool
}

func newAuditor(client Client, plainRequest Request, o Options) *auditor {
	return &auditor{Options: o, client: client, plainRequest: plainRequest, begin: time.Now()}
}

// ask sends the plain request, and reports whether it was refused. ok is false if the audit is over.
func (a *auditor) ask(ctx context.Context) (refused, ok bool) {
	answer, err := a.do(ctx, a.plainRequest)
	if err != nil {
		return false, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	refused = a.isRefusal(answer.Status)
	if len(a.log) == 0 {
		a.baseline.length = answer.Length
	}
	a.log = append(a.log, Exchange{answer, !refused})
	return refused, true
}

// do sends a request. An error of the plain request ends the audit.
func (a *auditor) do(ctx context.Context, request Request) (Answer, error) {
	a.mu.Lock()
	switch {
	case a.err != nil:
	case a.sent+max(request.Times, 1) > a.Requests:
		a.err = fmt.Errorf("%w: %d requests were sent, the maximum that --requests allows", ErrStopped, a.sent)
	}
	err := a.err
	a.sent += max(request.Times, 1)
	a.mu.Unlock()
	if err != nil {
		return Answer{}, err
	}
	answer, err := a.client.Do(ctx, request)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && request.sameAs(a.plainRequest) && a.baseline.status == 0 && (answer.Status == http.StatusTooManyRequests || slices.Contains(a.Refused, answer.Status)) {
		err = fmt.Errorf("%w: the server refuses the first request already, with %d: wait until it admits one", ErrStopped, answer.Status)
	}
	if err == nil && request.sameAs(a.plainRequest) && answer.Status >= 500 && !a.isRefusal(answer.Status) {
		err = fmt.Errorf("%w: the server answered %d", ErrStopped, answer.Status)
	}
	if err != nil && request.sameAs(a.plainRequest) && a.err == nil {
		if a.err = err; ctx.Err() != nil {
			a.err = ctx.Err()
		}
	}
	return answer, err
}

// sameAs reports whether two requests are the same. It compares only the number of their header fields. The audit ends
// if the answer to the plain request is an error.
func (r Request) sameAs(other Request) bool {
	return r.Method == other.Method && r.Target == other.Target && r.Host == other.Host && r.Proto == other.Proto &&
		r.From == other.From && r.Times == other.Times && len(r.Fields) == len(other.Fields)
}

// isRefusal reports whether a status means a refusal. The status of the first answer does not, because the first
// request counts as admitted.
func (a *auditor) isRefusal(status int) bool {
	if a.baseline.status == 0 {
		a.baseline.status = status
	}
	if a.refused != 0 {
		return status == a.refused
	}
	statuses := a.Refused
	if len(statuses) == 0 {
		statuses = refusals
	}
	for _, candidate := range statuses {
		if candidate == status && candidate != a.baseline.status {
			a.refused = candidate
			return true
		}
	}
	return false
}

func (a *auditor) requests() []fit.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return requestsOf(a.log)
}

func requestsOf(log []Exchange) []fit.Request {
	requests := make([]fit.Request, len(log))
	for i, s := range log {
		requests[i] = fit.Request{Sent: time.Duration(s.Sent.UnixNano()), Done: time.Duration(s.Done.UnixNano()), Allowed: s.Allowed}
	}
	return requests
}

// refusalTime returns the median time that a refusal takes.
func (a *auditor) refusalTime() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var times []time.Duration
	for _, s := range a.log {
		if !s.Allowed {
			times = append(times, s.Done.Sub(s.Sent))
		}
	}
	slices.Sort(times)
	return times[len(times)/2]
}

func (a *auditor) timeLeft() time.Duration { return a.Time - time.Since(a.begin) }

func (a *auditor) requestsLeft() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Requests - a.sent
}

func (a *auditor) progress(phase string) {
	if a.Progress != nil {
		a.Progress(phase, min(max(float64(time.Since(a.begin))/float64(a.Time), float64(a.Requests-a.requestsLeft())/float64(a.Requests)), 1))
	}
}
