package logs

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// maxQueued is how many bytes may wait to be written. Lines that do not fit are dropped.
	maxQueued = 1 << 20
	// flushTime is how long close waits for the writer.
	flushTime = time.Second
)

// A queue writes lines in a separate goroutine. Write never blocks: if the queue is full, the line is dropped.
type queue struct {
	out    io.Writer
	notice func(to io.Writer, dropped int) // writes a line about dropped lines

	mu      sync.Mutex
	waiting bytes.Buffer
	dropped int // number of lines since the last notice
	closed  bool
	more    chan struct{} // has an element if lines wait or closed is set
	ended   chan struct{}
}

func newQueue(out io.Writer, notice func(io.Writer, int)) *queue {
	q := &queue{out: out, notice: notice, more: make(chan struct{}, 1), ended: make(chan struct{})}
	go q.run()
	return q
}

// Write implements [io.Writer] and always succeeds. It must be called with exactly one line.
func (q *queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if q.closed || q.waiting.Len()+len(line) > maxQueued {
		q.dropped++
	} else {
		q.waiting.Write(line)
	}
	q.mu.Unlock()
	q.wake()
	return len(line), nil
}

func (q *queue) wake() {
	select {
	case q.more <- struct{}{}:
	default: // the goroutine has been notified already
	}
}

func (q *queue) run() {
	defer close(q.ended)
	var lines bytes.Buffer
	for range q.more {
		q.mu.Lock()
		lines, q.waiting = q.waiting, lines
		dropped, closed := q.dropped, q.closed
		q.dropped = 0
		q.mu.Unlock()
		if dropped > 0 {
			q.notice(&lines, dropped)
		}
		_, _ = q.out.Write(lines.Bytes()) // an error has nowhere to be reported
		lines.Reset()
		if closed {
			return
		}
	}
}

// close writes the lines that wait, for at most flushTime. Later lines are dropped.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake()
	late := time.NewTimer(flushTime)
	defer late.Stop()
	select {
	case <-q.ended:
	case <-late.C:
	}
}
