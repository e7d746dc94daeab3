package sim

import (
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/waiting"
)

// A question is one key's place in a call.
type question struct {
	what   uint8 // of the strategy
	key    uint32
	slot   uint32 // of what the strategy remembers about it
	cost   uint64 // of a request
	debt   uint64 // of a shareSettlement
	failed bool   // there is no answer, or not in time
	gone   bool   // it never came to the store
	since  int64  // when it was put
	until  int64  // until when the store refuses it, by when it was put; 0 if it does not
}

// A transport carries the questions of the nodes to the store and back, as the queues of package redislimit
// do: at once while fewer than defaults.UnderWay calls of a node are under way, else together with all
// that come meanwhile, the newest first, and dropped when it is too late for an answer. A call that fails takes as
// long as its timeout, and the product's own breaker stops calls to a store that does not answer.
type transport struct {
	*world
	queues []sendQueue  // of the nodes
	under  [][]question // calls that are under way
	free   []uint32     // numbers of calls that are over
	reach  func(node uint32, q *question)
	back   func(node uint32, q *question)
}

// A sendQueue is that of a node.
type sendQueue struct {
	breaker.Breaker
	trip    waiting.Trip
	waiting []question
	calls   int // under way
}

const (
	callReach uint8 = iota + 100 // a call is at the store
	callBack                     // and its answer at the node
	callLost                     // or it is not, and that time is over
)

// newTransport has reach called with a question at the store, unless that is away, and then back at the node.
func newTransport(w *world, reach, back func(node uint32, q *question)) *transport {
	return &transport{world: w, queues: make([]sendQueue, w.scenario.Nodes), reach: reach, back: back}
}

// isLost reports whether the store counts as lost to a node.
func (t *transport) isLost(node uint32) bool { return t.queues[node].IsOpen() }

// isBusy reports whether so much waits at a node that what can be put off is.
func (t *transport) isBusy(node uint32) bool { return len(t.queues[node].waiting) > defaults.BusyAbove }

// put has a question asked, or reports that it is not.
func (t *transport) put(node uint32, q question) bool {
	queue := &t.queues[node]
	if !queue.Allows(t.now) || len(queue.waiting) >= defaults.Waiting {
		return false
	}
	q.since = t.now
	queue.waiting = append(queue.waiting, q)
	if queue.calls < defaults.UnderWay || queue.calls < defaults.MostCalls && len(queue.waiting) >= defaults.PerCall {
		queue.calls++
		t.depart(node)
	}
	return true
}

// depart sends what waits, or ends a sender that has nothing to send.
func (t *transport) depart(node uint32) {
	queue := &t.queues[node]
	var late []question
	call, rest := waiting.Next(queue.waiting, defaults.PerCall, func(q question) bool {
		return queue.trip.IsTooLate(t.now-q.since, t.scenario.Timeout)
	}, func(q question) { late = append(late, q) })
	if queue.waiting = rest; len(call) == 0 {
		queue.calls--
	}
	defer func() {
		for i := range late {
			late[i].failed, late[i].gone = true, true
			t.back(node, &late[i])
		}
	}()
	if len(call) == 0 {
		return
	}
	if len(t.free) == 0 {
		t.free, t.under = append(t.free, uint32(len(t.under))), append(t.under, nil)
	}
	slot := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.under[slot] = call
	t.calls++
	t.events.put(event{at: t.now + t.way(), sent: t.now, what: callReach, node: node, slot: slot})
}

func (t *transport) happen(e event) {
	call := t.under[e.slot]
	if e.what == callReach {
		away := t.isAway(e.node)
		failed := away || t.lost()
		for i := range call {
			call[i].failed, call[i].gone = failed, away
			if !away {
				t.asked(call[i].key)
				t.reach(e.node, &call[i])
			}
		}
		e.at, e.what = t.now+t.way(), callBack
		if failed {
			e.at, e.what = t.now+int64(t.scenario.Timeout), callLost
		}
		t.events.put(e)
		return
	}
	if queue := &t.queues[e.node]; e.what == callBack {
		queue.Succeeded(t.now)
		queue.trip.Note(t.now - e.sent)
	} else {
		queue.Failed(e.sent, t.now, defaults.BreakAfter)
	}
	for i := range call {
		t.back(e.node, &call[i]) // may put another question, and so move t.under, but not call
	}
	t.free = append(t.free, e.slot)
	t.depart(e.node)
}
