package sim

import "time"

// What the nodes' own lanes do, in package redislimit.
const (
	perCall     = 64   // questions in a call
	perNode     = 8    // calls of a node under way
	mostWaiting = 4096 // questions of a node
	breakAfter  = 5    // calls of a node that fail in a row, and the store counts as lost
	probeEvery  = 250 * time.Millisecond
)

// A question is one key's place in a call.
type question struct {
	what   uint8 // of the strategy
	key    uint32
	slot   uint32 // of what the strategy remembers about it
	debt   uint64 // of a shareSettlement
	failed bool   // there is no answer, or not in time
	gone   bool   // it never came to the store
	since  int64  // when it was put
}

// A post carries the questions of the nodes to the store and back, as a lane of package redislimit
// does for each of them: at once while fewer than perNode calls are under way, else together with all
// that come meanwhile. A call that fails takes as long as its timeout, and a breaker stops calls to a
// store that fails again and again.
type post struct {
	*world
	lanes []lane       // of the nodes
	under [][]question // calls that are under way
	free  []uint32     // of those numbers
	reach func(node uint32, q *question)
	back  func(node uint32, q *question)
}

// A lane is that of a node.
type lane struct {
	waiting  []question
	calls    int   // under way
	failures int   // in a row
	probeAt  int64 // when the store counts as lost: the time of the next probe; else 0
}

const (
	postReach uint8 = iota + 100 // a call is at the store
	postBack                     // and its answer at the node
	postLost                     // or it is not, and that time is over
)

// newPost has reach called with a question at the store, unless that is away, and then back at the node.
func newPost(w *world, reach, back func(node uint32, q *question)) *post {
	return &post{world: w, lanes: make([]lane, w.scenario.Nodes), reach: reach, back: back}
}

// isLost reports whether the store counts as lost to a node.
func (p *post) isLost(node uint32) bool { return p.lanes[node].probeAt != 0 }

// isBusy reports whether so much waits at a node that what can be put off is.
func (p *post) isBusy(node uint32) bool { return len(p.lanes[node].waiting) > mostWaiting/2 }

// put has a question asked, or reports that it is not.
func (p *post) put(node uint32, q question) bool {
	l := &p.lanes[node]
	if l.probeAt != 0 {
		if p.now < l.probeAt {
			return false
		}
		l.probeAt = p.now + int64(probeEvery)
	}
	if len(l.waiting) >= mostWaiting {
		return false
	}
	q.since = p.now
	l.waiting = append(l.waiting, q)
	if l.calls < perNode {
		l.calls++
		p.depart(node)
	}
	return true
}

// depart sends what waits, or ends a sender that has nothing to send.
func (p *post) depart(node uint32) {
	l := &p.lanes[node]
	n := min(len(l.waiting), perCall)
	if n == 0 {
		l.calls--
		return
	}
	if len(p.free) == 0 {
		p.free, p.under = append(p.free, uint32(len(p.under))), append(p.under, nil)
	}
	slot := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.under[slot] = append(p.under[slot][:0], l.waiting[:n]...)
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	p.calls++
	p.queue.put(event{at: p.now + p.way(), what: postReach, node: node, slot: slot})
}

func (p *post) happen(e event) {
	call := p.under[e.slot]
	if e.what == postReach {
		away := p.isAway()
		failed := away || p.lost()
		for i := range call {
			call[i].failed, call[i].gone = failed, away
			if !away {
				p.asked(call[i].key)
				p.reach(e.node, &call[i])
			}
		}
		e.at, e.what = p.now+p.way(), postBack
		if failed {
			e.at, e.what = p.now+int64(p.scenario.Timeout), postLost
		}
		p.queue.put(e)
		return
	}
	l := &p.lanes[e.node]
	if e.what == postBack {
		l.failures, l.probeAt = 0, 0
	} else if l.failures++; l.failures >= breakAfter && l.probeAt == 0 {
		l.probeAt = p.now + int64(probeEvery)
	}
	for i := range call {
		p.back(e.node, &call[i]) // may put another, and so move p.under, but not call
	}
	p.free = append(p.free, e.slot)
	p.depart(e.node)
}
