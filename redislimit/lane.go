package redislimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/redislimit/internal/script"
)

const (
	batch      = 64   // keys in a call
	maxSenders = 8    // calls under way in a lane
	maxQueue   = 4096 // questions that wait for a call in a lane
	maxOrphans = 64   // calls of a store that are out of time and not over
)

// ErrStore is what errors of the store are, for errors.Is: it did not answer in time, answered an error, or is
// lost.
var ErrStore = errors.New("the store failed")

// errBusy is an ErrStore of a store that is not lost: more was asked at once than the node can send.
var errBusy = fmt.Errorf("redislimit: %w: %d questions wait for it already", ErrStore, maxQueue)

// A question is one key's place in a call.
type question struct {
	key      string
	ask      script.Ask
	answered func(script.Answer, error) // called once, or never if it is given up before it is sent
	givenUp  *atomic.Bool               // nobody waits for the answer; nil if somebody always does
}

func (q question) isGivenUp() bool { return q.givenUp != nil && q.givenUp.Load() }

// A lane collects the questions of a limiter that may go in one call, and sends them: at once while fewer
// than maxSenders calls are under way, else all that have come meanwhile with the next. Nothing in it waits
// longer than the store's timeout, for each call before it; nothing queues without bound.
type lane struct {
	store   *Store
	plan    *script.Plan
	breaker *breaker
	now     func() int64

	mu      sync.Mutex
	queue   []question
	senders int
}

// put has the question asked, or returns why it is not.
func (l *lane) put(q question) error {
	if !l.breaker.allows(l.now()) {
		return fmt.Errorf("redislimit: %w: it is lost, and is tried every %v", ErrStore, probeEvery)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) >= maxQueue {
		return errBusy
	}
	l.queue = append(l.queue, q)
	if l.senders < maxSenders {
		l.senders++
		go l.send()
	}
	return nil
}

// isBusy reports whether half of what may wait is waiting: what can be put off should be.
func (l *lane) isBusy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > maxQueue/2
}

// send asks until nothing is left to ask.
func (l *lane) send() {
	for {
		questions := l.next()
		if len(questions) == 0 {
			return
		}
		answers, err := l.ask(questions)
		for i, q := range questions {
			switch {
			case err != nil:
				q.answered(script.Answer{}, err)
			case answers[i].Foreign:
				l.store.failed.Add(1)
				q.answered(script.Answer{}, fmt.Errorf("redislimit: %w: the key %q holds something that is no limit's", ErrStore, q.key))
			default:
				q.answered(answers[i], nil)
			}
		}
	}
}

// next takes the questions of the next call from the queue, without those that are given up: a token that is
// charged now would be nobody's. If there are none it ends the sender.
func (l *lane) next() []question {
	l.mu.Lock()
	defer l.mu.Unlock()
	var questions []question
	taken := 0
	for _, q := range l.queue {
		if len(questions) == batch {
			break
		}
		if taken++; !q.isGivenUp() {
			questions = append(questions, q)
		}
	}
	l.queue = append(l.queue[:0], l.queue[taken:]...)
	if len(questions) == 0 {
		l.senders--
		l.queue = nil
	}
	return questions
}

// ask makes one call. It returns when the time is over even if the client does not: then the call is an
// orphan, of which there are only so many.
func (l *lane) ask(questions []question) ([]script.Answer, error) {
	s := l.store
	keys, asks := make([]string, len(questions)), make([]script.Ask, len(questions))
	for i, q := range questions {
		keys[i], asks[i] = q.key, q.ask
	}
	s.calls.Add(1)
	s.keys.Add(int64(len(keys)))
	if s.orphans.Load() >= maxOrphans {
		return nil, l.failed(fmt.Errorf("redislimit: %w: %d calls are out of time and not over", ErrStore, maxOrphans))
	}
	limit := s.timeout - s.timeout/10 // who waits for it gets the reason in time
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	answers := make([]script.Answer, len(questions))
	done := make(chan error, 1)
	go func() { done <- l.run(ctx, keys, asks, answers) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		if errors.Is(err, context.DeadlineExceeded) {
			s.timeouts.Add(1)
		}
		if err != nil {
			return nil, l.failed(fmt.Errorf("redislimit: %w: %w", ErrStore, err))
		}
		l.breaker.succeeded()
		return answers, nil
	case <-timer.C:
		s.timeouts.Add(1)
		s.orphans.Add(1)
		go func() { <-done; s.orphans.Add(-1) }()
		return nil, l.failed(fmt.Errorf("redislimit: %w: no answer within %v", ErrStore, limit))
	}
}

// failed counts a failed call.
func (l *lane) failed(err error) error {
	l.store.failed.Add(1)
	l.breaker.failed(l.now(), l.store.failures)
	return err
}
