package conformance

import "time"

// withWait returns a limit of one request per second with a burst. Requests wait up to a minute for its tokens.
func withWait(burst uint64) Limit { l := perSecond("line", burst); l.MaxWait = time.Minute; return l }

// queue sends a request and expects that it waits.
func (c *C) queue(n *Node, r Request) *Call {
	call := n.Begin(r)
	call.end()
	if !call.Waits() {
		c.Fatalf("a request does not wait: %+v, %+v", r, call.answer)
	}
	return call
}

// expectAnswered expects that a call has an answer if want has the value true at its index. The other calls must still
// wait.
func (c *C) expectAnswered(calls []*Call, want ...bool) {
	for i, call := range calls {
		if got := !call.Waits(); got != want[i] {
			c.Fatalf("request %d of the line is answered: want %v, got %v", i+1, want[i], got)
		} else if got && !call.Answer().Admitted {
			c.Fatalf("request %d of the line is refused: %+v", i+1, call.answer)
		}
	}
}

var waits = []*Case{
	{Name: "wait/order", Waits: true, Expects: "requests that wait are served in the order in which they came, each when its token is there",
		Run: func(c *C) {
			n := c.Start(withWait(1))
			n.Admits(1, Request{})
			line := []*Call{c.queue(n, Request{}), c.queue(n, Request{}), c.queue(n, Request{})}
			c.Advance(time.Second - time.Millisecond)
			c.expectAnswered(line, false, false, false)
			c.Advance(time.Millisecond)
			c.expectAnswered(line, true, false, false)
			c.Advance(time.Second)
			c.expectAnswered(line, true, true, false)
			c.Advance(time.Second)
			c.expectAnswered(line, true, true, true)
		}},
	{Name: "wait/too long", Waits: true, Expects: "a request that would wait for longer than it may is refused at once and takes nothing",
		Run: func(c *C) {
			l := withWait(1)
			l.MaxWait = 1500 * time.Millisecond
			n := c.Start(l)
			n.Admits(1, Request{})
			first := c.queue(n, Request{})
			for range 3 {
				n.Refuses(Request{})
			}
			c.Advance(time.Second)
			c.expectAnswered([]*Call{first}, true)
			second := c.queue(n, Request{})
			c.Advance(time.Second)
			c.expectAnswered([]*Call{second}, true)
		}},
	{Name: "wait/leave", Waits: true, Expects: "a client that leaves the line gives its turn to those behind it", Run: func(c *C) {
		n := c.Start(withWait(1))
		n.Admits(1, Request{})
		first, second, third := c.queue(n, Request{}), c.queue(n, Request{}), c.queue(n, Request{})
		first.Leave()
		c.Advance(time.Second)
		c.expectAnswered([]*Call{second, third}, true, false)
		c.Advance(time.Second)
		c.expectAnswered([]*Call{third}, true)
	}},
	{Name: "wait/leave with costs", Waits: true, Expects: "the same with other costs: what a client that leaves would have taken is not lost",
		Run: func(c *C) {
			l := withWait(3)
			l.Cost = true
			n := c.Start(l)
			n.Admits(1, Request{Cost: 3})
			first, second := c.queue(n, Request{Cost: 3}), c.queue(n, Request{Cost: 2})
			first.Leave()
			c.Advance(2 * time.Second)
			c.expectAnswered([]*Call{second}, true)
			third := c.queue(n, Request{Cost: 1})
			c.Advance(time.Second)
			c.expectAnswered([]*Call{third}, true)
		}},
	{Name: "wait/all leave", Waits: true, Expects: "a line that everyone has left is no line", Run: func(c *C) {
		n := c.Start(withWait(1))
		n.Admits(1, Request{})
		var line []*Call
		for range 10 {
			line = append(line, c.queue(n, Request{}))
		}
		for _, call := range line {
			call.Leave()
		}
		last := c.queue(n, Request{})
		c.Advance(time.Second)
		c.expectAnswered([]*Call{last}, true)
	}},
	{Name: "wait/goodput", Waits: true, Expects: "impatient clients do not keep a limit from admitting what it may", Run: func(c *C) {
		n := c.Start(withWait(1))
		served := 0
		for second := range 30 {
			var line []*Call
			for range 5 {
				call := n.Begin(Request{})
				call.end()
				line = append(line, call)
			}
			c.Advance(time.Second - 100*time.Millisecond)
			for _, call := range line {
				if call.Waits() {
					call.Leave()
				} else if call.Answer().Admitted {
					served++
				}
			}
			if second < 29 {
				c.Advance(100 * time.Millisecond)
			}
		}
		c.AtLeast(29, served, "requests served in 30 s at one a second")
		c.AtMost(31, served, "requests served in 30 s at one a second")
	}},
	{Name: "wait/several limits", Waits: true, Expects: "a request goes on when all of its limits have its tokens", Run: func(c *C) {
		slow := Limit{Name: "slow", Numbers: Numbers{N: 1, Per: 3 * time.Second, Burst: 1}, MaxWait: time.Minute}
		n := c.Start(withWait(1), slow)
		n.Admits(1, Request{})
		call := c.queue(n, Request{})
		c.Advance(3*time.Second - time.Millisecond)
		c.expectAnswered([]*Call{call}, false)
		c.Advance(time.Millisecond)
		c.expectAnswered([]*Call{call}, true)
	}},
	{Name: "wait/each limit", Waits: true, Expects: "a request that has waited for one limit goes on as each other limit admits it then", Run: func(c *C) {
		slow := perUser("slow", 1)
		slow.Per, slow.MaxWait = 20*time.Second, time.Minute
		n := c.Start(withWait(1), slow)
		n.Admits(1, ann)
		c.Advance(time.Second)
		call := c.queue(n, ann)
		c.Advance(19*time.Second - time.Millisecond)
		n.Admits(1, bob)
		c.Advance(time.Millisecond)
		c.expectAnswered([]*Call{call}, false)
		c.Advance(time.Second - time.Millisecond)
		c.expectAnswered([]*Call{call}, true)
	}},
	{Name: "wait/another refuses", Waits: true, Expects: "where a limit refuses, a request does not wait for another, and takes nothing of it",
		Run: func(c *C) {
			n := c.Start(withWait(1), perUser("user", 1))
			n.Admits(1, ann)
			for range 3 {
				n.Refuses(ann)
			}
			call := c.queue(n, bob)
			c.Advance(time.Second)
			c.expectAnswered([]*Call{call}, true)
		}},
	{Name: "wait/in flight", Waits: true, Expects: "a request that waits is in flight, and one that leaves the line makes room", Run: func(c *C) {
		n := c.Start(withWait(1), concurrency(1))
		n.Admits(1, Request{})
		call := c.queue(n, Request{})
		n.Refuses(Request{})
		call.Leave()
		call = c.queue(n, Request{})
		n.Refuses(Request{})
		c.Advance(time.Second)
		c.expectAnswered([]*Call{call}, true)
	}},
	{Name: "wait/shadow", Waits: true, Expects: "for a limit in shadow mode no request waits", Run: func(c *C) {
		c.Start(shadowed(withWait(1))).Admits(3, Request{})
	}},
	{Name: "wait/reload", Waits: true, Expects: "a reload keeps the line: who waits is served in its turn, once", Run: func(c *C) {
		n := c.Start(withWait(1))
		n.Admits(1, Request{})
		line := []*Call{c.queue(n, Request{}), c.queue(n, Request{})}
		n.Reload(withWait(1), perUser("user", 9))
		line = append(line, c.queue(n, Request{}))
		for i := range 3 {
			c.Advance(time.Second)
			c.expectAnswered(line, true, i > 0, i > 1)
		}
	}},
}

func concurrency(n uint64) Limit { return Limit{Name: "busy", Concurrency: n} }

// beginInFlight sends a request and expects that it reaches the server and remains in flight.
func (c *C) beginInFlight(n *Node, r Request) *Call {
	call := n.Begin(r)
	if !call.Arrived() {
		c.Fatalf("a request that has its place is refused: %+v", call.Answer())
	}
	return call
}

var inFlight = []*Case{
	{Name: "in flight/places", Expects: "N requests are in flight at a time, another is refused without a time, and one that ends makes room",
		Run: func(c *C) {
			n := c.Start(concurrency(2))
			first := c.beginInFlight(n, Request{})
			c.beginInFlight(n, Request{})
			c.Equal(time.Duration(0), n.Refuses(Request{}).RetryAfter, "Retry-After")
			c.beginInFlight(n, otherClient)
			c.Equal(true, first.End().Admitted, "admitted")
			c.admitsSoon(n, Request{})
		}},
	{Name: "in flight/gone", Expects: "a client that goes away makes room", Run: func(c *C) {
		n := c.Start(concurrency(1))
		call := c.beginInFlight(n, Request{})
		n.Refuses(Request{})
		call.Leave()
		c.admitsSoon(n, Request{})
	}},
	{Name: "in flight/broken", Expects: "a request that fails makes room, even if the server breaks off", Run: func(c *C) {
		n := c.Start(concurrency(1))
		call := c.beginInFlight(n, Request{Ends: Bad})
		n.Refuses(Request{})
		call.End()
		for range 3 {
			c.admitsSoon(n, Request{Ends: Bad})
			c.Soon("a request that broke off keeps its place", func() bool {
				call := n.Begin(Request{Ends: Broken})
				arrived := call.Arrived()
				call.End()
				return arrived
			})
		}
		c.admitsSoon(n, Request{})
	}},
	{Name: "in flight/all or nothing", Expects: "a request that has no place takes no token, and one without token no place", Run: func(c *C) {
		n := c.Start(perClient("rate", 2), concurrency(1))
		call := c.beginInFlight(n, Request{})
		for range 3 {
			n.Refuses(Request{})
		}
		call.End()
		c.admitsSoon(n, Request{})
		n.Refuses(Request{})
		n.Refuses(Request{})
		n.Reload(concurrency(1))
		n.Admits(1, Request{})
	}},
	{Name: "in flight/cost", Expects: "a request may take several places", Run: func(c *C) {
		l := concurrency(3)
		l.Cost = true
		n := c.Start(l)
		call := c.beginInFlight(n, Request{Cost: 2})
		n.Refuses(Request{Cost: 2})
		c.admitsSoon(n, Request{})
		call.End()
		c.admitsSoon(n, Request{Cost: 3})
	}},
	{Name: "in flight/reload", Expects: "over a reload what is in flight stays so, and its place comes back once", Run: func(c *C) {
		n := c.Start(concurrency(1), perClient("rate", 9))
		call := c.beginInFlight(n, Request{})
		n.Reload(concurrency(1))
		n.Refuses(Request{})
		n.Reload(concurrency(2))
		second := c.beginInFlight(n, Request{})
		n.Refuses(Request{})
		call.End()
		second.End()
		c.Soon("a place does not come back", func() bool {
			third := n.Begin(Request{})
			defer third.End()
			fourth := n.Begin(Request{})
			defer fourth.End()
			return third.Arrived() && fourth.Arrived()
		})
	}},
}
