package sim

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// These are the numbers of docs/budgets.md, "Several machines".
const (
	budgetNodes   = 4
	budgetClients = 64
	budgetLimit   = 10_000 // per minute, and as the burst
	budgetHold    = 200
	budgetTimeout = int64(50 * time.Millisecond)
	budgetSilence = 200 * time.Millisecond
)

type budgetCase struct {
	name   string
	lost   float64     // part of the answers that are lost
	away   [2]int64    // the times, in seconds, between which the store answers nothing
	wiped  []int64     // when the store forgets the key, in seconds
	killed map[int]int // by second: the node that is killed then; a new node replaces it
	shares bool        // the bound includes the shares of all nodes
}

// TestBudgetsInVirtualTime compares the tokens that strict nodes admit in a simulated minute with the bound of
// docs/budgets.md.
func TestBudgetsInVirtualTime(t *testing.T) {
	for _, c := range []budgetCase{
		{name: "nothing happens"},
		{name: "answers are lost", lost: 0.05, shares: true},
		{name: "nodes are killed", killed: map[int]int{10: 0, 20: 1, 30: 2, 31: 3}},
		{name: "the store is away", away: [2]int64{20, 35}, shares: true},
		{name: "the store is wiped", wiped: []int64{20, 40}},
		{name: "everything", lost: 0.02, away: [2]int64{20, 30}, wiped: []int64{25}, killed: map[int]int{15: 1, 24: 2}, shares: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			seeds := 8
			if testing.Short() {
				seeds = 3
			}
			for seed := range seeds {
				w := newBudgetWorld(t, c, uint64(seed))
				w.run(time.Minute)
				w.check(t)
			}
		})
	}
}

type budgetRequest struct {
	node      *budgetNode
	at, end   int64 // when the request's hold was taken, and when it was settled; 0 for never
	cost      uint64
	window    int64
	fromShare bool
	claim     lease.Claim
}

func (q *budgetRequest) settledCost() uint64 {
	if q.end == 0 {
		return budgetHold
	}
	return q.cost
}

type budgetNode struct {
	breaker breaker.Breaker
	share   *engine.Limiter
	owed    *shares.Debts[string]
	dead    bool
}

type budgetWorld struct {
	c        budgetCase
	random   *rand.Rand
	now      int64
	events   budgetEvents
	order    uint64
	limit    *script.Limit
	store    script.Model
	nodes    [budgetNodes]*budgetNode
	admitted []*budgetRequest
	refused  int
	t        *testing.T
}

func newBudgetWorld(t *testing.T, c budgetCase, seed uint64) *budgetWorld {
	limit, err := script.NewLimit(engine.TokenBucket(engine.Per(budgetLimit, time.Minute), budgetLimit), script.Terms{})
	require.NoError(t, err)
	w := &budgetWorld{c: c, random: rand.New(rand.NewPCG(seed, 3)), limit: limit, t: t}
	for i := range w.nodes {
		w.nodes[i] = w.newNode()
	}
	return w
}

func (w *budgetWorld) newNode() *budgetNode {
	policy, err := shares.Of(engine.TokenBucket(engine.Per(budgetLimit, time.Minute), budgetLimit), budgetNodes)
	require.NoError(w.t, err)
	share, err := engine.New(policy, engine.MaxKeys(16), engine.ClockFunc(func() time.Time { return time.Unix(1_800_000_000, w.now) }))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { assert.NoError(w.t, share.Close()) })
	return &budgetNode{share: share, owed: shares.NewDebts[string](16, nil)}
}

// run makes 64 clients send requests for the duration d.
func (w *budgetWorld) run(d time.Duration) {
	for i := range budgetClients {
		w.after(w.random.Int64N(int64(100*time.Millisecond)), func() { w.client(i % budgetNodes) })
	}
	for i := range w.nodes {
		w.after(int64(breaker.ProbeEvery), func() { w.probe(i) })
	}
	for at, node := range w.c.killed {
		w.after(int64(at)*int64(time.Second), func() {
			w.nodes[node].dead = true
			w.nodes[node] = w.newNode()
		})
	}
	for _, at := range w.c.wiped {
		w.after(at*int64(time.Second), func() { w.store = script.Model{} })
	}
	for len(w.events) > 0 {
		next := heap.Pop(&w.events).(budgetEvent)
		if next.at > int64(d) {
			return
		}
		w.now = next.at
		next.do()
	}
}

// client sends a request, and the next one afterwards.
func (w *budgetWorld) client(node int) {
	n := w.nodes[node]
	again := func(in time.Duration) {
		w.after(int64(in)+w.random.Int64N(int64(10*time.Millisecond)), func() { w.client(node) })
	}
	w.ask(n, script.Ask{Need: budgetHold, Want: budgetHold, Window: script.AnyWindow}, func(a script.Answer, ok bool) {
		q := &budgetRequest{node: n, at: w.now, window: a.Window}
		switch {
		case n.dead:
			again(0)
			return
		case !ok:
			q.fromShare = true
			if d, _ := n.share.Hold(n.share.KeyUint64(0), budgetHold); !d.Allowed {
				w.refused++
				again(100 * time.Millisecond)
				return
			}
			n.owed.Add("key", budgetHold)
		case a.Granted == 0:
			w.refused++
			again(100 * time.Millisecond)
			return
		}
		w.admitted = append(w.admitted, q)
		q.cost = w.random.Uint64N(budgetHold + 1)
		switch w.random.IntN(10) {
		case 0:
			q.cost = budgetHold + w.random.Uint64N(budgetHold)
		case 1:
			again(0) // the request is given up, and never settled
			return
		}
		w.after(w.random.Int64N(int64(2*time.Second)), func() {
			w.settle(q)
			w.settle(q) // the second settlement must have no effect
			again(0)
		})
	})
}

func (w *budgetWorld) settle(q *budgetRequest) {
	n := q.node
	if n.dead {
		return
	}
	if first, _ := q.claim.Settle(); !first {
		return
	}
	q.end = w.now
	switch {
	case q.cost > budgetHold:
		n.owed.Add("key", q.cost-budgetHold)
		if !n.breaker.IsOpen() {
			w.charge(n)
		}
	case q.fromShare:
		n.share.Refund(n.share.KeyUint64(0), budgetHold-q.cost)
		n.owed.Forgive("key", budgetHold-q.cost)
	case q.cost < budgetHold:
		w.ask(n, script.Ask{Returned: budgetHold - q.cost, Window: q.window}, func(script.Answer, bool) {})
	}
}

func (w *budgetWorld) charge(n *budgetNode) {
	owed := n.owed.Begin("key")
	if owed == 0 {
		return
	}
	w.ask(n, script.Ask{Debt: owed}, func(_ script.Answer, ok bool) { n.owed.End("key", ok) })
}

// probe probes a lost store four times per second, and charges a store that is not lost.
func (w *budgetWorld) probe(node int) {
	if n := w.nodes[node]; n.breaker.IsOpen() {
		w.ask(n, script.Ask{Need: 1}, func(script.Answer, bool) {})
	} else {
		w.charge(n)
	}
	w.after(int64(breaker.ProbeEvery), func() { w.probe(node) })
}

// ask asks the store. If no answer comes, the question may or may not have arrived.
func (w *budgetWorld) ask(n *budgetNode, ask script.Ask, answered func(script.Answer, bool)) {
	sent := w.now
	if !n.breaker.Allows(sent) {
		answered(script.Answer{}, false)
		return
	}
	there, back := w.random.Int64N(int64(5*time.Millisecond)), w.random.Int64N(int64(5*time.Millisecond))
	w.after(there, func() {
		at := w.now / int64(time.Second)
		if at >= w.c.away[0] && at < w.c.away[1] {
			w.fails(n, sent, answered)
			return
		}
		a := w.store.Ask(w.limit, 1_800_000_000_000_000+w.now/int64(time.Microsecond), ask)
		if w.random.Float64() < w.c.lost {
			w.fails(n, sent, answered)
			return
		}
		w.after(back, func() {
			if n.breaker.Succeeded(w.now); !n.dead {
				w.charge(n)
			}
			answered(a, true)
		})
	})
}

func (w *budgetWorld) fails(n *budgetNode, sent int64, answered func(script.Answer, bool)) {
	w.after(sent+budgetTimeout-w.now, func() {
		n.breaker.Failed(sent, w.now, budgetSilence)
		answered(script.Answer{}, false)
	})
}

// check compares the admitted tokens with the bound of docs/budgets.md, for every interval between two requests.
func (w *budgetWorld) check(t *testing.T) {
	slices.SortFunc(w.admitted, func(a, b *budgetRequest) int { return int(a.at - b.at) })
	require.Greater(t, len(w.admitted), 80)
	require.Greater(t, w.refused, 1000, "more is asked for than there is")
	const perSecond = budgetLimit / 60.0
	for i, first := range w.admitted {
		settled, beyond := uint64(0), uint64(0)
		for _, q := range w.admitted[i:] {
			cost := q.settledCost()
			settled, beyond = settled+cost, beyond+cost-min(cost, budgetHold)
			bound := budgetLimit + perSecond*float64(q.at-first.at)/1e9 + float64(w.givenBack(first.at, q.at)+beyond)
			if w.c.shares {
				bound += budgetLimit + perSecond*(0.25+float64(budgetTimeout)/1e9)
			}
			for second := range w.c.killed {
				at := int64(second) * int64(time.Second)
				if at >= first.at && at <= q.at && int64(second) >= w.c.away[0] && int64(second) <= w.c.away[1] {
					bound += 2 * budgetLimit / budgetNodes // a new share; the killed node's debts are lost
				}
			}
			for _, at := range w.c.wiped {
				if at := at * int64(time.Second); at >= first.at && at <= q.at {
					bound += budgetLimit + float64(w.givenBack(at, q.at))
				}
			}
			if float64(settled) > bound+1 {
				require.Failf(t, "more than the bound", "%d > %.0f from %v to %v", settled, bound, time.Duration(first.at), time.Duration(q.at))
			}
		}
	}
}

// givenBack sums the tokens that holds gave back between two times. It counts only requests that were in flight at the
// first of these times.
func (w *budgetWorld) givenBack(from, to int64) (sum uint64) {
	for _, q := range w.admitted {
		if q.at >= from {
			break
		}
		if q.end > from && q.end <= to {
			sum += budgetHold - min(q.cost, budgetHold)
		}
	}
	return sum
}

type budgetEvent struct {
	at    int64
	order uint64
	do    func()
}

type budgetEvents []budgetEvent

func (e budgetEvents) Len() int { return len(e) }
func (e budgetEvents) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e budgetEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *budgetEvents) Push(x any)   { *e = append(*e, x.(budgetEvent)) }

func (e *budgetEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *budgetWorld) after(in int64, do func()) {
	w.order++
	heap.Push(&w.events, budgetEvent{w.now + max(in, 0), w.order, do})
}
