package conformance

import (
	"time"

	"github.com/weir-go/weir/engine"
)

// plans returns a limit of one request per hour with a burst of two. Its tiers have the bursts five and ten.
func plans() Limit {
	l := perClient("plans", 2)
	l.Key = User
	l.Tiers = []Tier{{"paid", hourly(5)}, {"gold", hourly(10)}}
	return l
}

func inTier(tier, user string) Request { return Request{User: user, Tier: tier} }

var tiers = []*Case{
	{Name: "tiers/numbers", Expects: "each tier has its numbers, and a request without a known one the limit's own", Run: func(c *C) {
		n := c.Start(plans())
		n.Exactly(5, inTier("paid", "ann"))
		n.Exactly(10, inTier("gold", "bob"))
		n.Exactly(2, inTier("", "cid"))
		n.Exactly(2, inTier("unheard of", "dan"))
	}},
	{Name: "tiers/move", Expects: "a key that moves to another tier keeps what it has used: no way around gets more than the largest burst",
		Run: func(c *C) {
			n := c.Start(plans())
			n.Exactly(5, inTier("paid", "ann"))
			c.AtMost(5, n.Admitted(11, inTier("gold", "ann")), "under the larger tier")
			n.Refuses(inTier("paid", "ann"))
			n.Refuses(inTier("", "ann"))
		}},
	{Name: "tiers/unlimited", Expects: "a tier may be unlimited", Run: func(c *C) {
		l := plans()
		l.Tiers[0].Numbers = Numbers{Constant: Unlimited}
		n := c.Start(l)
		n.Admits(20, inTier("paid", "ann"))
		n.Exactly(2, inTier("", "bob"))
	}},
	{Name: "tiers/blocked", Expects: "a tier of 0 is refused", Run: func(c *C) {
		l := plans()
		l.Tiers[0].Numbers = Numbers{Constant: Blocked}
		n := c.Start(l)
		n.Refuses(inTier("paid", "ann"))
		n.Exactly(2, inTier("", "bob"))
	}},
	{Name: "tiers/all or nothing", Expects: "where another limit refuses, a tier keeps its tokens", Run: func(c *C) {
		n := c.Start(plans(), perClient("client", 3))
		n.Exactly(3, inTier("paid", "ann"))
		n.Refuses(inTier("paid", "ann"))
		n.Exactly(2, Request{Client: "192.0.2.2", User: "ann", Tier: "paid"})
	}},
}

// withQuotas returns a limit with a burst of two, whose requests may carry their own numbers.
func withQuotas() Limit { l := perUser("carried", 2); l.Quota = true; return l }

func quotaRequest(user string, burst uint64) Request {
	numbers := hourly(burst)
	return Request{User: user, Quota: &numbers}
}

// withUsers returns a limit with a burst of two, and other numbers for the given users.
func withUsers(users map[string]Numbers) Limit { l := perUser("told", 2); l.Users = users; return l }

var users = []*Case{
	{Name: "users/numbers", Expects: "a user that is known has its numbers, and another one the limit's own", Run: func(c *C) {
		n := c.Start(withUsers(map[string]Numbers{"ann": hourly(4), "bob": {N: 3, Per: time.Minute, Burst: 6}}))
		n.Exactly(4, Request{User: "ann"})
		n.Exactly(6, Request{User: "bob"})
		n.Exactly(2, Request{User: "cid"})
		c.Advance(time.Minute)
		n.Exactly(0, Request{User: "ann"})
		n.Exactly(3, Request{User: "bob"})
	}},
	{Name: "users/constant", Expects: "a user may have no limit, or one of 0", Run: func(c *C) {
		n := c.Start(withUsers(map[string]Numbers{"ann": {Constant: Unlimited}, "bob": {Constant: Blocked}}))
		n.Admits(20, Request{User: "ann"})
		n.Refuses(Request{User: "bob"})
		n.Exactly(2, Request{User: "cid"})
	}},
	{Name: "users/change", Expects: "a user whose numbers change keeps what it has used, and the numbers of another change nothing", Run: func(c *C) {
		n := c.Start(withUsers(map[string]Numbers{"ann": hourly(4), "bob": hourly(6)}))
		n.Exactly(4, Request{User: "ann"})
		n.Admits(3, Request{User: "bob"})
		n.Reload(withUsers(map[string]Numbers{"ann": hourly(10), "bob": hourly(6), "cid": hourly(5)}))
		c.AtMost(6, n.Admitted(11, Request{User: "ann"}), "after four of ten were used")
		n.Exactly(3, Request{User: "bob"})
		n.Exactly(5, Request{User: "cid"})
		n.Reload(withUsers(map[string]Numbers{"bob": hourly(8)}))
		n.Refuses(Request{User: "ann"})
		n.Exactly(2, Request{User: "bob"})
	}},
	{Name: "users/all or nothing", Expects: "where another limit refuses, a known user keeps its tokens", Run: func(c *C) {
		n := c.Start(withUsers(map[string]Numbers{"ann": hourly(5)}), perClient("client", 3))
		n.Exactly(3, Request{User: "ann"})
		n.Refuses(Request{User: "ann"})
		n.Exactly(2, Request{Client: "192.0.2.2", User: "ann"})
	}},
}

var quotas = []*Case{
	{Name: "quota/numbers", Expects: "a request may carry its limit, and one without has the limit's own", Run: func(c *C) {
		n := c.Start(withQuotas())
		n.Exactly(4, quotaRequest("ann", 4))
		n.Exactly(6, quotaRequest("bob", 6))
		n.Exactly(2, Request{User: "cid"})
	}},
	{Name: "quota/change", Expects: "a key whose numbers change keeps what it has used", Run: func(c *C) {
		n := c.Start(withQuotas())
		n.Exactly(4, quotaRequest("ann", 4))
		c.AtMost(6, n.Admitted(11, quotaRequest("ann", 10)), "after four of ten were used")
		n.Refuses(quotaRequest("ann", 4))
	}},
	{Name: "quota/unlimited", Expects: "a request may carry no limit, or one of 0", Run: func(c *C) {
		n := c.Start(withQuotas())
		n.Admits(20, Request{User: "ann", Quota: &Numbers{Constant: Unlimited}})
		n.Refuses(Request{User: "bob", Quota: &Numbers{Constant: Blocked}})
	}},
	{Name: "quota/bad numbers", Expects: "a request with numbers that no limit can have is not admitted", Run: func(c *C) {
		n := c.Start(withQuotas())
		a := n.Send(Request{User: "ann", Quota: &Numbers{N: 1, Per: time.Hour, Burst: 1 << 40}})
		c.Equal(false, a.Admitted, "admitted")
		n.Exactly(2, Request{User: "ann"})
	}},
}

func withCosts(burst uint64) Limit { l := perClient("priced", burst); l.Cost = true; return l }

var costs = []*Case{
	{Name: "cost/tokens", Expects: "a request takes what it costs, all or none", Run: func(c *C) {
		n := c.Start(withCosts(10))
		n.Admits(1, Request{Cost: 7})
		n.Refuses(Request{Cost: 4})
		n.Admits(1, Request{Cost: 3})
		n.Refuses(Request{Cost: 1})
	}},
	{Name: "cost/free", Expects: "a request that costs 0 passes and takes nothing", Run: func(c *C) {
		n := c.Start(withCosts(1))
		n.Admits(3, Request{Free: true})
		n.Exactly(1, Request{})
		n.Admits(1, Request{Free: true})
	}},
	{Name: "cost/never", Expects: "a request that costs more than the limit is refused without a time, and takes nothing", Run: func(c *C) {
		n := c.Start(withCosts(5))
		c.Equal(time.Duration(0), n.Refuses(Request{Cost: 6}).RetryAfter, "Retry-After")
		n.Admits(1, Request{Cost: 5})
	}},
	{Name: "cost/window", Expects: "costs count in windows, too", Run: func(c *C) {
		l := window("priced", engine.AlgorithmSlidingWindow, 10)
		l.Cost = true
		n := c.Start(l)
		n.Admits(1, Request{Cost: 7})
		n.Refuses(Request{Cost: 4})
		n.Admits(1, Request{Cost: 3})
	}},
}

// withRefund returns a limit that counts only failures, because a request that ends well gets its cost back.
func withRefund(burst uint64) Limit { l := withCosts(burst); l.Refund = Good; return l }

var refunds = []*Case{
	{Name: "refund/outcome", Expects: "requests with the outcome get their cost back, others do not", Run: func(c *C) {
		n := c.Start(withRefund(2))
		for range 5 {
			c.admitsSoon(n, Request{})
		}
		n.Admits(2, Request{Ends: Bad})
		n.Refuses(Request{})
	}},
	{Name: "refund/cost", Expects: "what comes back is what was taken, and never more than the limit", Run: func(c *C) {
		n := c.Start(withRefund(10))
		n.Admits(1, Request{Cost: 4, Ends: Bad})
		c.admitsSoon(n, Request{Cost: 6})
		c.admitsSoon(n, Request{Cost: 6})
		c.admitsSoon(n, Request{Cost: 6, Ends: Bad})
		n.Refuses(Request{})
	}},
	{Name: "refund/refused", Expects: "a refused request gets nothing back", Run: func(c *C) {
		n := c.Start(withRefund(5))
		n.Admits(1, Request{Cost: 4, Ends: Bad})
		for range 3 {
			n.Refuses(Request{Cost: 2})
		}
		n.Exactly(1, Request{Ends: Bad})
	}},
	{Name: "refund/gone", Expects: "a client that goes away gets nothing back", Run: func(c *C) {
		l := withRefund(1)
		busy := Limit{Name: "busy", Concurrency: 1, Path: "/busy"}
		l.Path = "/busy"
		n := c.Start(l, busy)
		call := n.Begin(Request{Path: "/busy"})
		c.Equal(true, call.Arrived(), "the server has the request")
		call.Leave()
		c.Soon("a client that has gone is still in flight", func() bool {
			a := n.Send(Request{Path: "/busy"})
			return a.Admitted || a.RetryAfter > 0 // the place is free, but the tokens are not back
		})
		n.Refuses(Request{Path: "/busy"})
	}},
}

// admitsSoon expects that a request is admitted, at once or a moment later. An earlier request may get its refund a
// moment after its answer.
func (c *C) admitsSoon(n *Node, r Request) {
	c.Soon("what was given back does not come", func() bool { return n.Send(r).Admitted })
}

// withHold returns a limit whose requests take an estimate of their cost that is settled later.
func withHold(burst uint64) Limit { l := withCosts(burst); l.Hold = true; return l }

var holds = []*Case{
	{Name: "hold/less", Expects: "what a request did not need of its estimate comes back", Run: func(c *C) {
		n := c.Start(withHold(10))
		n.Admits(1, Request{Cost: 8, Actual: 3})
		c.admitsSoon(n, Request{Cost: 7, Actual: 7})
		n.Refuses(Request{Actual: 1})
	}},
	{Name: "hold/more", Expects: "what a request needed beyond its estimate is charged", Run: func(c *C) {
		n := c.Start(withHold(10))
		n.Admits(1, Request{Cost: 2, Actual: 9})
		c.Soon("the rest is not charged", func() bool { return !n.Send(Request{Cost: 2, Actual: 2}).Admitted })
		n.Exactly(1, Request{Actual: 1})
	}},
	{Name: "hold/held", Expects: "while a request is under way its estimate is taken", Run: func(c *C) {
		n := c.Start(withHold(10))
		call := n.Begin(Request{Cost: 8, Actual: 1})
		c.Equal(true, call.Arrived(), "the server has the request")
		n.Refuses(Request{Cost: 3, Actual: 3})
		call.End()
		c.admitsSoon(n, Request{Cost: 9, Actual: 9})
	}},
	{Name: "hold/all or nothing", Expects: "where another limit refuses, the estimate is not taken", Run: func(c *C) {
		n := c.Start(withHold(10), perUser("user", 1))
		n.Admits(1, Request{User: "ann", Cost: 1, Actual: 1})
		n.Refuses(Request{User: "ann", Cost: 9, Actual: 9})
		n.Admits(1, Request{User: "bob", Cost: 9, Actual: 9})
	}},
}
