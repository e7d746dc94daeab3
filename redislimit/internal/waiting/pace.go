package waiting

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
)

const (
	burstTime = int64(2 * time.Second)  // how long the questions of a burst may wait
	period    = int64(10 * time.Second) // the shortest trip is determined for each such period
)

// A Pace adapts the calls of a queue to its store. It bounds the calls in progress, and the waits of calls and
// questions. The trip of a call is the time from sending it to its answer. The window is the largest sum of the sizes
// of the calls in progress. Times are arguments, in nanoseconds. The zero Pace has measured nothing yet.
//
// More calls than a store can work on do not make it answer sooner. So the window shrinks when answers take longer than
// the shortest trip by more than an eighth of the timeout. It grows when answers are fast enough and questions wait.
type Pace struct {
	calls    int      // number of calls in progress
	size     int      // the sum of their sizes
	window   int      // the size of the calls that may be in progress; 0 means firstWindow
	cutAt    int64    // when window was last reduced
	trip     int64    // duration of calls, smoothed
	shortest [2]int64 // the shortest trips of this period and of the previous one; 0 for none
	began    int64    // when this period began
	emptyAt  int64    // when there was last no waiting question
	turns    int      // turns during an overload
}

const (
	firstWindow = 4 * script.Full // reduced only if answers are late, because this process may be the slow one
	maxWindow   = defaults.MaxFullCalls * script.Full
)

// Window returns the largest sum of sizes of the calls in progress.
func (p *Pace) Window() int {
	if p.window == 0 {
		return firstWindow
	}
	return p.window
}

// MayBegin reports whether one more call may be sent now. It may if no call is in progress. Otherwise the window must
// have room, and a call that is not full must be at most the eighth in progress.
func (p *Pace) MayBegin(isFull bool) bool {
	return p.calls == 0 || p.size < p.Window() && (isFull || p.calls < defaults.MaxCalls)
}

// Begin notes that one more call has begun. [Pace.Send] then notes its size.
func (p *Pace) Begin() { p.calls++ }

// Continues reports, when a call has ended, whether another call may follow it.
func (p *Pace) Continues() bool { return p.calls == 1 || p.calls > 0 && p.size < p.Window() }

// Send notes the size of a call.
func (p *Pace) Send(size int) { p.size += size }

// End notes that a call has ended and that no other call follows it.
func (p *Pace) End() {
	if p.calls--; p.calls == 0 {
		p.window = 0 // the queue is idle: start over with the first window
	}
}

// Answered notes the answer to a call. If isShort is true, enough questions were waiting to fill one more call.
func (p *Pace) Answered(sent, now int64, size int, timeout time.Duration, isShort bool) {
	p.size -= size
	duration := max(now-sent, 1)
	if p.trip == 0 {
		p.trip = duration
	}
	p.trip += (duration - p.trip) / 8
	if now-p.began >= period {
		p.shortest, p.began = [2]int64{0, p.shortest[0]}, now
	}
	if p.shortest[0] == 0 || duration < p.shortest[0] {
		p.shortest[0] = duration
	}
	shortest := p.shortest[0]
	if p.shortest[1] > 0 {
		shortest = min(shortest, p.shortest[1])
	}
	switch window := p.Window(); {
	case duration-shortest > int64(timeout)/8:
		p.cut(sent, now, max(window*3/4, min(window, firstWindow)))
	case isShort:
		p.window = min(window+size, maxWindow)
	}
}

// Failed notes that a call failed. If isLate is true, it was not answered in time.
func (p *Pace) Failed(sent, now int64, size int, isLate bool) {
	if p.size -= size; isLate {
		p.cut(sent, now, max(p.Window()/2, 1))
	}
}

// cut reduces the window, but only once for calls that are in progress at the same time.
func (p *Pace) cut(sent, now int64, window int) {
	if sent >= p.cutAt {
		p.window, p.cutAt = window, now
	}
}

// Empty notes that no question waits.
func (p *Pace) Empty(now int64) { p.emptyAt = now }

// A Turn contains the rules for the next call of a queue.
type Turn struct {
	patience int64
	reserve  int64 // the part of the timeout that is kept for the answer
	IsFailing,
	IsNewest bool // the call takes the newest questions first
}

// Turn returns the rules for the next call. The argument oldest is how long the oldest question has waited. If this is
// more than half the timeout, answers to the oldest questions would be too late, so every second call takes the newest
// questions. The argument isFailing means that calls have failed, and none was answered, for as long as a call may
// take.
func (p *Pace) Turn(now, oldest int64, timeout time.Duration, isFailing bool) Turn {
	t := Turn{IsFailing: isFailing, patience: max(burstTime, int64(timeout)), reserve: min(p.trip, int64(timeout)/2)}
	if oldest > int64(timeout)/2 {
		p.turns++
		t.IsNewest = p.turns%2 == 1
	}
	switch {
	case isFailing:
		t.patience, t.reserve = int64(timeout), int64(timeout)/2
	case now-p.emptyAt > burstTime:
		t.patience = int64(timeout)
	}
	return t
}

// IsTooLate reports whether a question that has waited so long is dropped, because it cannot be answered within the
// timeout. There are two exceptions:
//
//   - If the queue was empty at some time in the last two seconds, no question is dropped, however many have come
//     since.
//   - While the store answers, a question is not dropped before half the timeout. Otherwise there might be no calls,
//     and the pace could not notice that calls have become faster.
func (t Turn) IsTooLate(waited int64) bool { return waited+t.reserve > t.patience }
