package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
)

// Cases returns all cases, in the order of the page.
func Cases() []*Case {
	return slices.Concat(single, promises, allOrNothing, shadow, tiers, users, quotas, costs, waits, refunds, holds, inFlight, spreads, stores, files,
		reloads, reloadSettings, reloadRules)
}

// hourly returns a limit of one token per hour. A case takes much less than an hour, so no tokens come back unless the
// case moves the clock.
func hourly(burst uint64) Numbers { return Numbers{N: 1, Per: time.Hour, Burst: burst} }

// perClient returns a limit of one request per hour for each client, with a burst.
func perClient(name string, burst uint64) Limit { return Limit{Name: name, Numbers: hourly(burst)} }

// atPath returns the same limit as perClient, but only for the requests with the given path.
func atPath(path, name string, burst uint64) Limit {
	return Limit{Name: name, Path: path, Numbers: hourly(burst)}
}

// perUser returns a limit of one request per hour for each user, with a burst.
func perUser(name string, burst uint64) Limit {
	return Limit{Name: name, Key: User, Numbers: hourly(burst)}
}

func window(name string, a engine.Algorithm, n uint64) Limit {
	return Limit{Name: name, Algorithm: a, Numbers: Numbers{N: n, Per: time.Hour, Burst: n}}
}

func perSecond(name string, burst uint64) Limit {
	return Limit{Name: name, Numbers: Numbers{N: 1, Per: time.Second, Burst: burst}}
}

var (
	otherClient = Request{Client: "192.0.2.2"}
	ann         = Request{User: "ann"}
	bob         = Request{User: "bob"}
)

var single = []*Case{
	{Name: "one limit/burst", Expects: "a client gets its burst. The refusal after it reports when to come back: not too early, and not too late",
		Run: func(c *C) {
			n := c.Start(Limit{Name: "a", Numbers: Numbers{N: 1, Per: 10 * time.Second, Burst: 3}})
			n.Admits(3, Request{})
			a := n.Refuses(Request{})
			c.Equal(10*time.Second, a.RetryAfter, "Retry-After")
			c.Advance(10*time.Second - time.Millisecond)
			n.Refuses(Request{})
			c.Advance(time.Millisecond)
			n.Exactly(1, Request{})
		}},
	{Name: "one limit/keys", Expects: "each client has a bucket of its own", Run: func(c *C) {
		n := c.Start(perClient("a", 2))
		n.Exactly(2, Request{})
		n.Exactly(2, otherClient)
	}},
	algorithm("fixed window", engine.AlgorithmFixedWindow, 5),
	algorithm("sliding window", engine.AlgorithmSlidingWindow, 0),
	algorithm("sliding log", engine.AlgorithmSlidingLog, 2),
	algorithm("batch refill", engine.AlgorithmBatchRefill, 5),
	{Name: "one limit/calendar", Expects: "a limit of five in a month of the calendar begins again on the 1st", Run: func(c *C) {
		n := c.Start(Limit{Name: "a", Algorithm: engine.AlgorithmFixedWindow, Numbers: Numbers{N: 5, Calendar: engine.Month}})
		for range 4 {
			now := c.env.Now().UTC()
			first := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			c.Advance(first.Sub(now) / 2)
			n.Exactly(5, Request{})
			c.Advance(first.Sub(c.env.Now()) - time.Millisecond)
			n.Refuses(Request{})
			c.Advance(time.Millisecond)
		}
	}},
	{Name: "one limit/blocked", Expects: "a limit of 0 refuses every request and reports no time to come back", Run: func(c *C) {
		n := c.Start(Limit{Name: "a", Path: "/closed", Numbers: Numbers{Constant: Blocked}})
		c.Equal(time.Duration(0), n.Refuses(Request{Path: "/closed"}).RetryAfter, "Retry-After")
		n.Admits(1, Request{Path: "/open"})
	}},
	{Name: "one limit/unlimited", Expects: "an unlimited limit admits every request", Run: func(c *C) {
		c.Start(Limit{Name: "a", Numbers: Numbers{Constant: Unlimited}}).Admits(20, Request{})
	}},
}

// algorithm returns a case with a limit of five requests per hour. Two requests come at the beginning of an hour, and
// three in the middle. After the hour, the limit must admit the given number of requests, which differs between
// algorithms.
func algorithm(name string, a engine.Algorithm, after int) *Case {
	return &Case{Name: "one limit/" + name, Expects: fmt.Sprintf("a %s of five in an hour admits five, then %d when the hour is over, and five two hours later",
		name, after), Run: func(c *C) {
		n := c.Start(window("a", a, 5))
		n.Admits(2, Request{})
		c.Advance(30 * time.Minute)
		n.Exactly(3, Request{})
		c.Advance(30 * time.Minute)
		n.Exactly(after, Request{})
		c.Advance(2 * time.Hour)
		n.Exactly(5, Request{})
	}}
}

var allOrNothing = []*Case{
	{Name: "all or nothing/first refuses", Expects: "where the first limit refuses, the second keeps its tokens", Run: func(c *C) {
		n := c.Start(perClient("client", 1), perUser("user", 3))
		n.Exactly(1, ann)
		n.Refuses(ann)
		n.Admits(1, Request{Client: "192.0.2.2", User: "ann"})
		n.Admits(1, Request{Client: "192.0.2.3", User: "ann"})
		n.Refuses(Request{Client: "192.0.2.4", User: "ann"})
	}},
	{Name: "all or nothing/last refuses", Expects: "where the last limit refuses, those before keep their tokens", Run: func(c *C) {
		n := c.Start(perClient("client", 3), fixedWindow("more", 10), perUser("user", 1))
		n.Exactly(1, ann)
		n.Refuses(ann)
		n.Admits(1, bob)
		n.Admits(1, Request{User: "cid"})
		n.Refuses(Request{User: "dan"})
	}},
	{Name: "all or nothing/longest wait", Expects: "a refusal reports the longest of the waits", Run: func(c *C) {
		c.Equal(30*time.Second, bothRefuse(c).RetryAfter, "Retry-After")
	}},
	{Name: "all or nothing/names", Expects: "a refusal reports all limits that refuse", Run: func(c *C) {
		names := bothRefuse(c).Refused
		slices.Sort(names)
		c.Equal([]string{"long", "short"}, names, "the limits that refuse")
	}},
	{Name: "all or nothing/no match", Expects: "a limit for other requests is not asked", Run: func(c *C) {
		n := c.Start(atPath("/a", "a", 2), atPath("/b", "b", 1))
		n.Admits(5, Request{Path: "/c"})
		n.Exactly(2, Request{Path: "/a"})
		n.Exactly(1, Request{Path: "/b"})
	}},
	{Name: "all or nothing/cost", Expects: "a request that is too dear for one limit takes nothing from the cheaper one", Run: func(c *C) {
		dear := Limit{Name: "dear", Numbers: hourly(10), Cost: true}
		n := c.Start(perClient("count", 3), dear)
		n.Admits(1, Request{Cost: 8})
		for range 3 {
			n.Refuses(Request{Cost: 5})
		}
		n.Admits(2, Request{Cost: 1})
		n.Refuses(Request{Cost: 1})
	}},
}

// bothRefuse returns the answer to a request that two of three limits refuse.
func bothRefuse(c *C) Answer {
	n := c.Start(Limit{Name: "short", Numbers: Numbers{N: 1, Per: 10 * time.Second, Burst: 1}},
		Limit{Name: "long", Numbers: Numbers{N: 1, Per: 30 * time.Second, Burst: 1}}, perClient("roomy", 9))
	n.Admits(1, Request{})
	return n.Refuses(Request{})
}

func fixedWindow(name string, n uint64) Limit { return window(name, engine.AlgorithmFixedWindow, n) }

var shadow = []*Case{
	{Name: "shadow/admits", Expects: "a limit in shadow mode refuses nothing", Run: func(c *C) {
		c.Start(shadowed(perClient("a", 1))).Admits(5, Request{})
	}},
	{Name: "shadow/takes", Expects: "a limit in shadow mode takes what it would take: when it becomes active, its tokens are used up",
		Run: func(c *C) {
			n := c.Start(shadowed(perClient("a", 3)))
			n.Admits(3, Request{})
			n.Reload(perClient("a", 3))
			n.Refuses(Request{})
		}},
	{Name: "shadow/all or nothing", Expects: "a request that an active limit refuses takes nothing from one in shadow mode", Run: func(c *C) {
		n := c.Start(shadowed(perClient("before", 2)), perUser("user", 1), shadowed(perClient("behind", 2)))
		n.Exactly(1, ann)
		n.Refuses(ann)
		n.Reload(perClient("before", 2), perUser("user", 1), perClient("behind", 2))
		n.Exactly(1, bob)
	}},
	{Name: "shadow/others", Expects: "a limit in shadow mode that is used up changes nothing for the others", Run: func(c *C) {
		c.Start(shadowed(perClient("a", 1)), perClient("b", 3)).Exactly(3, Request{})
	}},
}

func shadowed(l Limit) Limit { l.Shadow = true; return l }
