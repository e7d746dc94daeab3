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
	kind         uint8 // one of the strategy's kinds of questions
	key          uint32
	slot         uint32 // identifies the strategy's data about this question
	cost         uint64 // the cost of a request
	debt         uint64 // the debt that a shareCharge charges
	isFailed     bool   // there is no answer, or the answer came too late
	isLost       bool   // the question did not reach the store
	since        int64  // when it was put into the queue
	refusedUntil int64  // the end of the store's refusal, by a node that counts from the time since; 0 for none

	isComing bool // it failed at the node, but is on its way to the store
}

// A transport carries the questions of the nodes to the store, and the answers back. The store carries out each call
// that reaches it, even if the node no longer waits.
type transport struct {
	*world
	queues   []sendQueue // of the nodes; each node has one for each partition
	flights  []flight    // calls in progress
	free     []uint32    // numbers of calls that have ended
	onReach  func(node uint32, q *question)
	onAnswer func(node uint32, q *question)
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

// newTransport returns a transport. It calls onReach when a question has reached the store, and onAnswer when a
// question has an answer or has failed. While the store is unavailable, it calls onReach only for questions that the
// node has given up.
func newTransport(w *world, onReach, onAnswer func(node uint32, q *question)) *transport {
	return &transport{world: w, queues: make([]sendQueue, w.scenario.Nodes*w.scenario.partitions()), onReach: onReach, onAnswer: onAnswer}
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
	if len(queue.waiting) > 0 && queue.pace.MayBegin(len(queue.waiting) >= defaults.PerCall) {
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
	if queue.pace.Continues() {
		call, queue.waiting = waiting.Next(queue.waiting, defaults.PerCall, turn.IsNewest, func(question) int { return 1 }, func(q question) bool {
			return turn.IsTooLate(t.now - q.since)
		}, func(question) bool { return false }, func(q question) { late = append(late, q) })
	}
	defer func() {
		for i := range late {
			late[i].isFailed, late[i].isLost = true, true
			t.onAnswer(node, &late[i])
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
		t.free, t.flights = append(t.free, uint32(len(t.flights))), append(t.flights, flight{})
	}
	slot := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	outbound, inbound := t.oneWayTime(), t.oneWayTime()
	t.flights[slot] = flight{questions: call, isInTime: outbound+inbound <= wait, limit: wait}
	t.calls++
	e := event{at: t.now + outbound, sent: t.now, kind: callReach, node: node, key: key, slot: slot}
	t.events.put(e)
	e.at, e.kind = t.now+min(outbound+inbound, wait), callEnd
	t.events.put(e)
}

func (t *transport) happen(e event) {
	if e.kind == callReach {
		t.arriveAtStore(e)
		return
	}
	call := &t.flights[e.slot]
	if deadline := e.sent + call.limit; !call.isAnswered && t.now < deadline {
		e.at = deadline
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
		questions[i].isFailed, questions[i].isComing = !isAnswered, !isReached
		t.onAnswer(e.node, &questions[i]) // may put another question, which may move t.flights, but not the questions
	}
	if isReached {
		t.free = append(t.free, e.slot)
	}
	t.depart(e.node, e.key)
}

// arriveAtStore makes the store carry out a call, unless the node cannot reach the store at that moment.
func (t *transport) arriveAtStore(e event) {
	call := &t.flights[e.slot]
	isAway := t.isAway(e.node, e.key)
	call.isReached = true
	call.isAnswered = !isAway && call.isInTime && !t.isAnswerLost()
	if isAway && !call.isOver {
		for i := range call.questions {
			call.questions[i].isFailed, call.questions[i].isLost = true, true
		}
		return
	}
	questions, isAnswered, isOver := call.questions, call.isAnswered, call.isOver
	for i := range questions {
		questions[i].isFailed, questions[i].isLost = !isAnswered, isAway
		if !isAway {
			t.noteQuestion(questions[i].key)
		}
		t.onReach(e.node, &questions[i])
	}
	if isOver {
		t.free = append(t.free, e.slot)
	}
}
