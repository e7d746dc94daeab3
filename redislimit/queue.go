package redislimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/waiting"
)

// maxOrphans is how many calls of a client may be out of time and not over.
const maxOrphans = 64

// ErrStore matches every error of the store by errors.Is: the store did not answer in time, answered an error, or is
// lost.
var ErrStore = errors.New("the store failed")

// errBusy is an ErrStore of a store that is not lost: a question would not be answered in time, because too many are
// before it.
var errBusy = fmt.Errorf("redislimit: %w: more is asked at once than it answers in time", ErrStore)

// A question is the place of one key in a call, or of a group of keys that is decided all or nothing.
type question struct {
	items    []script.Item                // not empty; one, where the queue is of a limit
	answered func([]script.Answer, error) // called once, or never if the question is given up before it is sent
	since    int64                        // when it was put
	givenUp  *atomic.Bool                 // no caller waits for the answer any more; nil for a question that stays
}

// weight returns how much of a call the question takes.
func (q question) weight() (n int) {
	for _, one := range q.items {
		n += one.Limit.Weight()
	}
	return n
}

func (q question) isGivenUp() bool { return q.givenUp != nil && q.givenUp.Load() }

// A queue collects the questions that may share one call, those of a limiter or those for groups, and sends them: at
// once while fewer than defaults.UnderWay calls are under way, else all that have come meanwhile with the next call, or
// when they make a full one. So a long round trip does not bound how much can be asked. Nothing in it waits for longer
// than the client's timeout less a round trip: then it is dropped, and its caller told so, because it would be charged
// and not answered in time. It has no largest length: what waits has a caller that waits for it, or is one of a lease
// or a debt.
type queue struct {
	client   *Client
	redis    rueidis.Client // nil before the store has answered
	limit    *script.Limit  // nil for groups, which have several
	breaker  *breaker.Breaker
	eviction *eviction // nil with FailOpen: a store that drops keys is better than none
	now      func() int64

	trip waiting.Trip

	mu      sync.Mutex
	waiting []question
	tidyAt  int // length at which those that are given up are taken out
	senders int
}

// put has the question asked, or returns why it is not.
func (q *queue) put(one question) error {
	if q.eviction.isLost() {
		return errEvicts
	}
	if !q.allows() {
		return errLost
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= max(q.tidyAt, defaults.Waiting) {
		q.waiting = slices.DeleteFunc(q.waiting, question.isGivenUp)
		q.tidyAt = 2 * len(q.waiting)
	}
	one.since = q.now()
	q.waiting = append(q.waiting, one)
	if q.senders < defaults.UnderWay || q.senders < defaults.MostCalls && q.isFull() {
		q.senders++
		go q.send()
	}
	return nil
}

// isFull reports whether a call would be full.
func (q *queue) isFull() bool {
	if q.limit != nil {
		return len(q.waiting)*q.limit.Weight() >= script.Full
	}
	weight := 0
	for i := 0; i < len(q.waiting) && weight < script.Full; i++ {
		weight += q.waiting[i].weight()
	}
	return weight >= script.Full
}

// errTimeout is the cause of an ErrStore that is out of time.
var errTimeout = errors.New("no answer within")

var errLost = fmt.Errorf("redislimit: %w: it is lost, and is tried every %v", ErrStore, breaker.ProbeEvery)

// allows reports whether the store may be asked now.
func (q *queue) allows() bool { return q.redis != nil && q.breaker.Allows(q.now()) }

// isLost reports whether the part of the store counts as lost: it does not answer, or drops keys.
func (q *queue) isLost() bool { return q.breaker.IsOpen() || q.eviction.isLost() }

// lostSince returns since when, and whether, the part of the store counts as lost.
func (q *queue) lostSince() (since int64, lost bool) {
	since, lost = q.breaker.LostSince()
	if q.eviction == nil {
		return since, lost
	}
	if dropping := q.eviction.since.Load(); dropping != 0 {
		if !lost {
			return dropping, true
		}
		return min(since, dropping), true
	}
	return since, lost
}

// isBusy reports whether so much waits that what can be put off should be.
func (q *queue) isBusy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > defaults.BusyAbove
}

// send asks until nothing is left to ask.
func (q *queue) send() {
	for {
		questions := q.next()
		if len(questions) == 0 {
			return
		}
		answers, err := q.ask(questions)
		for _, one := range questions {
			if err != nil {
				one.answered(nil, err)
				continue
			}
			n := len(one.items)
			one.answered(answers[:n:n], nil)
			answers = answers[n:]
		}
	}
}

// foreign counts a key that holds something else, and returns the error.
func (c *Client) foreign(name string) error {
	c.failed.Add(1)
	return fmt.Errorf("redislimit: %w: the key %q holds something that is no limit's", ErrStore, name)
}

// next takes the questions of the next call, without those that are given up or too late: a token that is charged for
// them would be lost. If there are none it ends the sender.
func (q *queue) next() []question {
	var late []question
	q.mu.Lock()
	now := q.now()
	call, rest := waiting.Next(q.waiting, script.Full, question.weight, func(one question) bool {
		return q.trip.IsTooLate(now-one.since, q.client.timeout)
	}, question.isGivenUp, func(one question) { late = append(late, one) })
	if q.waiting = rest; len(call) == 0 {
		q.senders--
		q.waiting = nil
	}
	q.mu.Unlock()
	for _, one := range late {
		if !one.isGivenUp() {
			one.answered(nil, errBusy)
		}
	}
	return call
}

// ask makes one call. It returns when the time is over even if the client library does not: then the call is an
// orphan, and there are at most maxOrphans of them.
func (q *queue) ask(questions []question) ([]script.Answer, error) {
	c, sent := q.client, q.now()
	keys := 0
	for _, one := range questions {
		keys += len(one.items)
	}
	c.calls.Add(1)
	c.keys.Add(int64(keys))
	if n := c.orphans.Load(); n >= maxOrphans {
		return nil, q.failed(sent, errOrphans(n))
	}
	limit := c.timeout - c.timeout/10 // so that the caller gets the reason before its own time is over
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	answers := make([]script.Answer, keys)
	done := make(chan error, 1)
	go func() { done <- q.run(ctx, questions, answers) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		if errors.Is(err, context.DeadlineExceeded) {
			c.timeouts.Add(1)
			err = fmt.Errorf("%w %v", errTimeout, limit)
		}
		if err != nil && !errors.Is(err, errMoves) {
			return nil, q.failed(sent, fmt.Errorf("redislimit: %w: %w", ErrStore, c.dialer.explain(err)))
		}
		q.succeeded()
		if err != nil {
			return nil, err
		}
		q.trip.Note(q.now() - sent)
		return answers, nil
	case <-timer.C:
		c.timeouts.Add(1)
		c.orphans.Add(1)
		go func() { <-done; c.orphans.Add(-1) }()
		err := fmt.Errorf("%w %v", errTimeout, limit)
		return nil, q.failed(sent, fmt.Errorf("redislimit: %w: %w", ErrStore, c.dialer.explain(err)))
	}
}

func errOrphans(n int64) error {
	return fmt.Errorf("redislimit: %w: %d calls are out of time and not over", ErrStore, n)
}

// failed counts a failed call.
func (q *queue) failed(sent int64, err error) error {
	now := q.now()
	q.client.noteFailure(err, q.breaker.Failed(sent, now, q.client.breakAfter), now)
	return err
}

// succeeded notes that the store has answered.
func (q *queue) succeeded() {
	if q.breaker.Succeeded(q.now()) {
		q.client.noteReturn()
	}
}
