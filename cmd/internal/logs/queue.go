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
	out         io.Writer
	writeNotice func(w io.Writer, dropped int) // writes a line about dropped lines

	mu      sync.Mutex
	buffer  bytes.Buffer
	dropped int // number of lines since the last notice
	closed  bool
	wakeup  chan struct{} // has an element if lines wait or closed is set
	done    chan struct{}
}

func newQueue(out io.Writer, writeNotice func(io.Writer, int)) *queue {
	q := &queue{out: out, writeNotice: writeNotice, wakeup: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Write implements [io.Writer] and always succeeds. It must be called with exactly one line.
func (q *queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if q.closed || q.buffer.Len()+len(line) > maxQueued {
		q.dropped++
	} else {
		q.buffer.Write(line)
	}
	q.mu.Unlock()
	q.wake()
	return len(line), nil
}

func (q *queue) wake() {
	select {
	case q.wakeup <- struct{}{}:
	default: // the goroutine has been notified already
	}
}

func (q *queue) run() {
	defer close(q.done)
	var lines bytes.Buffer
	for range q.wakeup {
		q.mu.Lock()
		lines, q.buffer = q.buffer, lines
		dropped, closed := q.dropped, q.closed
		q.dropped = 0
		q.mu.Unlock()
		if dropped > 0 {
			q.writeNotice(&lines, dropped)
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
	timer := time.NewTimer(flushTime)
	defer timer.Stop()
	select {
	case <-q.done:
	case <-timer.C:
	}
}
