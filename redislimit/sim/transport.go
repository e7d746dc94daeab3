package sim

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/waiting"
)

// A question asks the store about one key. It is sent in one call.
type question struct {
	what   uint8 // one of the strategy's kinds of questions
	key    uint32
	slot   uint32 // identifies the strategy's data about this question
	cost   uint64 // the cost of a request
	debt   uint64 // the debt that a shareCharge charges
	failed bool   // there is no answer, or the answer came too late
	gone   bool   // the question did not reach the store
	since  int64  // when it was put into the queue
	until  int64  // the end of the refusal that the node knew at the time since; 0 for none

	isComing bool // it failed at the node, but is on its way to the store
}

// A transport carries the questions of the nodes to the store, and the answers back. The store carries out each call
// that reaches it, even if the node no longer waits.
type transport struct {
	*world
	queues []sendQueue // of the nodes; each node has one for each partition
	under  []flight    // calls in progress
	free   []uint32    // numbers of calls that have ended
	reach  func(node uint32, q *question)
	back   func(node uint32, q *question)
}

// A sendQueue is the queue of a node for a partition.
type sendQueue struct {
	breaker.Breaker
	pace    waiting.Pace
	waiting []question
}

// A flight is a call in progress. It ends when it has reached the store, and the node has the answer or has given up.
type flight struct {
	questions  []question
	isInTime   bool // before the node gives up
	isReached  bool
	isAnswered bool // the store has carried it out, and the answer comes in time
	isOver     bool // the node no longer waits for it
	limit      int64
}

// weight is how much of a call's capacity a question takes.
const weight = script.Full / defaults.PerCall

const (
	callReach uint8 = iota + 100
	callEnd         // the answer has reached the node, or the time is over
)

// newTransport returns a transport. It calls reach when a question has reached the store, and back when a question has
// an answer or has failed. While the store is unavailable, it calls reach only for questions that the node has given
// up.
func newTransport(w *world, reach, back func(node uint32, q *question)) *transport {
	return &transport{world: w, queues: make([]sendQueue, w.scenario.Nodes*w.scenario.partitions()), reach: reach, back: back}
}

func (t *transport) queueOf(node, key uint32) *sendQueue {
	partitions := uint32(t.scenario.partitions())
	return &t.queues[node*partitions+key%partitions]
}

func (t *transport) isLost(node, key uint32) bool { return t.queueOf(node, key).IsOpen() }

func (t *transport) isBusy(node, key uint32) bool {
	return len(t.queueOf(node, key).waiting) > defaults.BusyAbove
}

func (t *transport) put(node uint32, q question) bool {
	queue := t.queueOf(node, q.key)
	if !queue.Allows(t.now) {
		return false
	}
	q.since = t.now
	if len(queue.waiting) == 0 {
		queue.pace.Empty(t.now)
	}
	queue.waiting = append(queue.waiting, q)
	t.begin(node, q.key)
	return true
}

func (t *transport) begin(node, key uint32) {
	queue := t.queueOf(node, key)
	if len(queue.waiting) > 0 && queue.pace.Begins(len(queue.waiting) >= defaults.PerCall) {
		queue.pace.Begin()
		t.depart(node, key)
	}
}

// depart sends the questions that wait, or ends a sender without questions.
func (t *transport) depart(node, key uint32) {
	queue := t.queueOf(node, key)
	var late, call []question
	oldest := int64(0)
	if len(queue.waiting) > 0 {
		oldest = t.now - queue.waiting[0].since
	}
	wait := t.scenario.callTime()
	turn := queue.pace.Turn(t.now, oldest, t.scenario.Timeout, queue.IsFailing(t.now, wait))
	if queue.pace.GoesOn() {
		call, queue.waiting = waiting.Next(queue.waiting, defaults.PerCall, turn.IsNewest, func(question) int { return 1 }, func(q question) bool {
			return turn.IsTooLate(t.now - q.since)
		}, func(question) bool { return false }, func(q question) { late = append(late, q) })
	}
	defer func() {
		for i := range late {
			late[i].failed, late[i].gone = true, true
			t.back(node, &late[i])
		}
	}()
	if len(call) == 0 {
		queue.pace.End()
		return
	}
	if turn.IsFailing {
		wait -= time.Duration(t.now - call[0].since)
	}
	t.send(node, key, call, int64(wait))
	queue.pace.Send(weight * len(call))
	t.begin(node, key)
}

func (t *transport) send(node, key uint32, call []question, wait int64) {
	if len(t.free) == 0 {
		t.free, t.under = append(t.free, uint32(len(t.under))), append(t.under, flight{})
	}
	slot := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	there, back := t.way(), t.way()
	t.under[slot] = flight{questions: call, isInTime: there+back <= wait, limit: wait}
	t.calls++
	e := event{at: t.now + there, sent: t.now, what: callReach, node: node, key: key, slot: slot}
	t.events.put(e)
	e.at, e.what = t.now+min(there+back, wait), callEnd
	t.events.put(e)
}

func (t *transport) happen(e event) {
	if e.what == callReach {
		t.arriveAt(e)
		return
	}
	call := &t.under[e.slot]
	if over := e.sent + call.limit; !call.isAnswered && t.now < over {
		e.at = over
		t.events.put(e)
		return
	}
	call.isOver = true
	queue, size := t.queueOf(e.node, e.key), weight*len(call.questions)
	if call.isAnswered {
		queue.Succeeded(t.now)
		queue.pace.Answered(e.sent, t.now, size, t.scenario.Timeout, len(queue.waiting) >= defaults.PerCall)
	} else {
		queue.pace.Failed(e.sent, t.now, size, true)
		queue.Failed(e.sent, t.now, defaults.BreakAfter)
	}
	questions, isReached, isAnswered := call.questions, call.isReached, call.isAnswered
	for i := range questions {
		questions[i].failed, questions[i].isComing = !isAnswered, !isReached
		t.back(e.node, &questions[i]) // may put another question, which may move t.under, but not the questions
	}
	if isReached {
		t.free = append(t.free, e.slot)
	}
	t.depart(e.node, e.key)
}

// arriveAt makes the store carry out a call, unless the node cannot reach the store at that moment.
func (t *transport) arriveAt(e event) {
	call := &t.under[e.slot]
	isAway := t.isAway(e.node, e.key)
	call.isReached = true
	call.isAnswered = !isAway && call.isInTime && !t.lost()
	if isAway && !call.isOver {
		for i := range call.questions {
			call.questions[i].failed, call.questions[i].gone = true, true
		}
		return
	}
	questions, isAnswered, isOver := call.questions, call.isAnswered, call.isOver
	for i := range questions {
		questions[i].failed, questions[i].gone = !isAnswered, isAway
		if !isAway {
			t.asked(questions[i].key)
		}
		t.reach(e.node, &questions[i])
	}
	if isOver {
		t.free = append(t.free, e.slot)
	}
}
