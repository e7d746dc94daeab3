package redislimit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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

// maxOrphans bounds a client's calls that have timed out and not returned yet.
const maxOrphans = 256

// ErrStore matches, by errors.Is, every error of the store: the store did not answer in time, returned an error, or is
// lost.
var ErrStore = errors.New("the store failed")

// errBusy is the error for a question that had to wait too long for its turn.
var errBusy = fmt.Errorf("redislimit: %w: it gets more requests at once than it can answer in time", ErrStore)

// A question asks the store about one key, or about a group of keys that is decided all or nothing.
type question struct {
	items    []script.Item                // not empty; one item if the queue belongs to a limiter
	onAnswer func([]script.Answer, error) // called once; never if the question is given up before it is sent
	since    int64                        // when it was put into the queue
	givenUp  *atomic.Bool                 // set when no caller waits any more; nil if the question cannot be given up
}

func (q question) weight() (n int) {
	for _, item := range q.items {
		n += item.Limit.Weight()
	}
	return n
}

func (q question) isGivenUp() bool { return q.givenUp != nil && q.givenUp.Load() }

// A queue collects questions, and sends them to one part of the store. Questions wait only while calls are in progress,
// and one call carries many, so a long round trip does not limit the throughput.
//
// [waiting.Pace] bounds the calls in progress and the time that a question waits. If a question waits longer, its
// caller gets an error. A queue has no maximum length: each question has a caller that waits for it, or belongs to a
// lease or a debt.
type queue struct {
	client   *Client
	redis    rueidis.Client // nil before the store has answered
	limit    *script.Limit  // nil for groups, whose items have different limits
	breaker  *breaker.Breaker
	eviction *eviction // nil with FailOpen: a store that drops keys is better than none
	now      func() int64

	mu      sync.Mutex
	pace    waiting.Pace
	waiting []question
	tidyAt  int // the length at which given-up questions are removed
}

// put puts the question into the queue, or returns the reason why it cannot.
func (q *queue) put(newQuestion question) error {
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
	newQuestion.since = q.now()
	if len(q.waiting) == 0 {
		q.pace.Empty(newQuestion.since)
	}
	q.waiting = append(q.waiting, newQuestion)
	q.startCall()
	return nil
}

func (q *queue) startCall() {
	if len(q.waiting) > 0 && q.pace.MayBegin(q.isFull()) {
		q.pace.Begin()
		go q.send()
	}
}

// isFull reports whether the questions that wait would fill a call.
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

var errTimeout = errors.New("no answer within")

// errSilent is the error for a question that was not sent because earlier questions got no answer.
var errSilent = fmt.Errorf("redislimit: %w: it answers nothing", ErrStore)

var errLost = fmt.Errorf("redislimit: %w: it is lost, and is tried every %v", ErrStore, breaker.ProbeEvery)

func (q *queue) allows() bool { return q.redis != nil && q.breaker.Allows(q.now()) }

// isLost reports whether the queue's part of the store counts as lost: it does not answer, or the store drops keys.
func (q *queue) isLost() bool { return q.breaker.IsOpen() || q.eviction.isLost() }

func (q *queue) lostSince() (since int64, isLost bool) {
	since, isLost = q.breaker.LostSince()
	if q.eviction == nil {
		return since, isLost
	}
	if dropsSince := q.eviction.since.Load(); dropsSince != 0 {
		if !isLost {
			return dropsSince, true
		}
		return min(since, dropsSince), true
	}
	return since, isLost
}

// isBusy reports whether questions that are not urgent should be put off.
func (q *queue) isBusy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > defaults.BusyAbove
}

func (q *queue) send() {
	for {
		c, ok := q.next()
		if !ok {
			return
		}
		answers, err := q.ask(c)
		for _, question := range c.questions {
			if err != nil {
				question.onAnswer(nil, err)
				continue
			}
			n := len(question.items)
			question.onAnswer(answers[:n:n], nil)
			answers = answers[n:]
		}
	}
}

func (c *Client) foreign(name string) error {
	c.failed.Add(1)
	return fmt.Errorf("redislimit: %w: the key %q has a value that is not a limit's", ErrStore, name)
}

type call struct {
	questions []question
	size      int
	sent      int64
	limit     time.Duration // the time that the call may take
}

// next returns the next call, and ok is false if there is none. It drops questions that are given up or too late,
// because tokens charged for them would be lost.
func (q *queue) next() (next call, ok bool) {
	var lateQuestions []question
	q.mu.Lock()
	now, oldest := q.now(), int64(0)
	if len(q.waiting) > 0 {
		oldest = now - q.waiting[0].since
	}
	limit := q.client.callTime()
	turn := q.pace.Turn(now, oldest, q.client.timeout, q.breaker.IsFailing(now, limit))
	if q.pace.Continues() {
		next.questions, q.waiting = waiting.Next(q.waiting, script.Full, turn.IsNewest, question.weight, func(w question) bool {
			return turn.IsTooLate(now - w.since)
		}, question.isGivenUp, func(w question) { lateQuestions = append(lateQuestions, w) })
	}
	if len(q.waiting) == 0 {
		q.waiting = nil
	}
	if ok = len(next.questions) > 0; ok {
		next.sent, next.limit = now, limit
		if turn.IsFailing {
			next.limit -= time.Duration(now - next.questions[0].since)
		}
		for _, question := range next.questions {
			next.size += question.weight()
		}
		q.pace.Send(next.size)
		q.startCall()
	} else {
		q.pace.End()
	}
	q.mu.Unlock()
	cause := errBusy
	if turn.IsFailing {
		cause = errSilent
	}
	for _, question := range lateQuestions {
		if !question.isGivenUp() {
			question.onAnswer(nil, cause)
		}
	}
	return next, ok
}

// callTime is shorter than the timeout, so that the caller still gets the reason for a failure.
func (c *Client) callTime() time.Duration { return c.timeout - c.timeout/10 }

// ask waits for an answer in pieces of time, of which at most latePieces late pieces do not count.
const (
	pieces     = 8
	latePieces = 2 * pieces
)

// ask makes one call, and returns when the time for the answer is over. If the client library has not returned by then,
// the call becomes an orphan. There are at most maxOrphans orphans.
//
// Only time in which this process runs counts. So ask waits in pieces, and a piece whose timer was late does not count.
// After each piece, ask yields to all other goroutines, so that it finds an answer that has arrived. Otherwise a
// process that gets no processor, or has ten thousand goroutines to run, would blame the store.
func (q *queue) ask(current call) ([]script.Answer, error) {
	client := q.client
	keys := 0
	for _, question := range current.questions {
		keys += len(question.items)
	}
	client.calls.Add(1)
	client.keys.Add(int64(keys))
	if n := client.orphans.Load(); n >= maxOrphans {
		return nil, q.fail(current, errOrphans(n))
	}
	ctx, cancel := context.WithTimeout(context.Background(), pieces*current.limit)
	answers := make([]script.Answer, keys)
	done := make(chan error, 1)
	go func() {
		done <- q.run(ctx, current.questions, answers)
		cancel()
	}()
	piece := current.limit / pieces
	timer := time.NewTimer(piece)
	defer timer.Stop()
	for counted, late := 0, 0; counted < pieces; {
		began := q.now()
		select {
		case err := <-done:
			return answers, q.finish(current, err)
		case <-timer.C:
		}
		runtime.Gosched()
		if q.now()-began > int64(piece*3/2) && late < latePieces {
			late++
		} else {
			counted++
		}
		timer.Reset(piece)
	}
	select {
	case err := <-done:
		return answers, q.finish(current, err)
	default:
	}
	client.orphans.Add(1)
	go func() {
		if err := <-done; err == nil {
			q.breaker.Late(q.now())
		}
		client.orphans.Add(-1)
	}()
	current.sent = max(current.sent, q.now()-int64(current.limit)) // counts only time in which this process ran
	return nil, q.finish(current, context.DeadlineExceeded)
}

func (q *queue) finish(c call, err error) error {
	if err != nil && !errors.Is(err, errMoves) {
		if errors.Is(err, context.DeadlineExceeded) {
			q.client.timeouts.Add(1)
			err = fmt.Errorf("%w %v", errTimeout, c.limit)
		}
		return q.fail(c, fmt.Errorf("redislimit: %w: %w", ErrStore, q.client.dialer.explain(err)))
	}
	q.noteSuccess()
	q.mu.Lock()
	q.pace.Answered(c.sent, q.now(), c.size, q.client.timeout, q.isFull())
	q.mu.Unlock()
	return err
}

func errOrphans(n int64) error {
	return fmt.Errorf("redislimit: %w: %d calls have timed out and not ended", ErrStore, n)
}

func (q *queue) fail(c call, err error) error {
	q.mu.Lock()
	q.pace.Failed(c.sent, q.now(), c.size, errors.Is(err, errTimeout))
	q.mu.Unlock()
	return q.noteFailure(c.sent, err)
}

func (q *queue) noteFailure(sent int64, err error) error {
	now := q.now()
	q.client.noteFailure(err, q.breaker.Failed(sent, now, q.client.breakAfter), now)
	return err
}

func (q *queue) noteSuccess() {
	if q.breaker.Succeeded(q.now()) {
		q.client.noteReturn()
	}
}
