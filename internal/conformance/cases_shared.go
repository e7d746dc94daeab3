package conformance

import (
	"errors"
	"time"

	"github.com/weir-go/weir/engine"
)

func stored(l Limit) Limit { l.Stored = true; return l }

func (c *C) newStore() *Store {
	if c.front.store != nil {
		return c.front.store()
	}
	return startStore(c.env.T)
}

func (c *C) storeConfig(s *Store, loss Loss, limits ...Limit) Config {
	return Config{Limits: limits, Store: s, Nodes: 2, OnLoss: loss}
}

func (c *C) startTwo(config Config) (a, b *Node) { return c.StartWith(config), c.StartWith(config) }

var stores = []*Case{
	{Name: "store/together", Stored: true, Expects: "two nodes admit together what the limit says", Run: func(c *C) {
		a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, stored(perClient("a", 5))))
		a.Admits(2, Request{})
		b.Exactly(3, Request{})
		a.Refuses(Request{})
		b.Exactly(5, otherClient)
	}},
	{Name: "store/all or nothing", Stored: true, Expects: "of two limits in a store, where one refuses, the other keeps its tokens", Run: func(c *C) {
		a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, stored(perClient("client", 3)), stored(perUser("user", 1))))
		a.Exactly(1, ann)
		b.Refuses(ann)
		b.Admits(1, bob)
		a.Exactly(1, Request{User: "cid"})
	}},
	{Name: "store/and memory", Stored: true, Expects: "where a limit in memory refuses, one in the store keeps its tokens, and the other way round",
		Run: func(c *C) {
			n := c.StartWith(c.storeConfig(c.newStore(), Closed, stored(perClient("store", 3)), perUser("memory", 1)))
			n.Exactly(1, ann)
			n.Refuses(ann)
			n.Admits(1, bob)
			n.Exactly(1, Request{User: "cid"})
			n.Refuses(Request{User: "dan"})
			n.Exactly(1, Request{Client: "192.0.2.2", User: "dan"})
		}},
	{Name: "store/tiers", Stored: true, Expects: "tiers hold over all nodes", Run: func(c *C) {
		a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, stored(plans()), stored(perClient("client", 30))))
		a.Admits(2, inTier("paid", "ann"))
		b.Exactly(3, inTier("paid", "ann"))
		a.Exactly(10, inTier("gold", "bob"))
		b.Exactly(2, inTier("unheard of", "cid"))
	}},
	{Name: "store/tier change", Stored: true, Expects: "a key that moves to another tier keeps what it has used in the store", Run: func(c *C) {
		a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, stored(plans())))
		a.Exactly(5, inTier("paid", "ann"))
		b.Exactly(5, inTier("gold", "ann"))
		a.Refuses(inTier("", "ann"))
		b.Refuses(inTier("paid", "ann"))
	}},
	{Name: "store/tier of none", Stored: true, Expects: "of tiers in a store one may be unlimited and one 0", Run: func(c *C) {
		l := stored(plans())
		l.Tiers[0].Numbers, l.Tiers[1].Numbers = Numbers{Constant: Unlimited}, Numbers{Constant: Blocked}
		a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, l))
		a.Admits(20, inTier("paid", "ann"))
		b.Refuses(inTier("gold", "ann"))
		a.Exactly(2, inTier("", "ann"))
		b.Refuses(inTier("", "ann"))
	}},
	{Name: "store/quota", Stored: true, Expects: "the limits that requests carry hold over all nodes, and a key keeps what it has used", Run: func(c *C) {
		a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, stored(withQuotas()), stored(perClient("client", 30))))
		a.Admits(2, quotaRequest("ann", 4))
		b.Exactly(2, quotaRequest("ann", 4))
		c.AtMost(2, a.Admitted(3, quotaRequest("ann", 6)), "after four of six")
		b.Exactly(2, Request{User: "bob"})
		a.Refuses(Request{User: "bob"})
	}},
	{Name: "store/users", Stored: true, Expects: "the limits of known users hold over all nodes, and a user whose limit changes keeps what it has used",
		Run: func(c *C) {
			limit := func(ann uint64) Limit {
				return stored(withUsers(map[string]Numbers{"ann": hourly(ann), "bob": {N: 3, Per: time.Hour, Burst: 6},
					"cid": {Constant: Blocked}, "dan": {Constant: Unlimited}}))
			}
			a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, limit(4), stored(perClient("client", 60))))
			a.Admits(1, Request{User: "ann"})
			b.Exactly(3, Request{User: "ann"})
			a.Exactly(6, Request{User: "bob"})
			b.Refuses(Request{User: "bob"})
			a.Refuses(Request{User: "cid"})
			a.Admits(20, Request{User: "dan"})
			b.Exactly(2, Request{User: "eve"})
			a.Refuses(Request{User: "eve"})
			a.Reload(limit(7), stored(perClient("client", 60)))
			c.AtMost(3, a.Admitted(4, Request{User: "ann"}), "after four of seven")
		}},
	{Name: "store/batch refill", Stored: true, Expects: "a batch refill holds over all nodes, or the configuration is refused", Run: func(c *C) {
		c.sharedOrRefused(stored(window("a", engine.AlgorithmBatchRefill, 4)), Request{}, 4)
	}},
	{Name: "store/wait", Stored: true, Expects: "a limit that may be waited for holds over all nodes, or the configuration is refused", Run: func(c *C) {
		l := stored(perClient("a", 4))
		l.MaxWait = time.Millisecond
		c.sharedOrRefused(l, Request{}, 4)
	}},
	{Name: "store/overflow", Stored: true, Expects: "a limit that refuses new keys without room holds over all nodes, or the configuration is refused",
		Run: func(c *C) {
			l := stored(perClient("a", 4))
			l.Overflow = engine.Refuse
			c.sharedOrRefused(l, Request{}, 4)
		}},
	{Name: "store/hold", Stored: true, Expects: "an estimate counts over all nodes, and so does what a request cost less or more", Run: func(c *C) {
		a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, stored(withHold(10))))
		call := a.Begin(Request{Cost: 8, Actual: 3})
		c.Equal(true, call.Arrived(), "the server has the request")
		b.Refuses(Request{Cost: 3, Actual: 3})
		call.End()
		c.admitsSoon(b, Request{Cost: 2, Actual: 6})
		c.Soon("the rest is not charged", func() bool { return !a.Send(Request{Cost: 2}).Admitted })
		c.admitsSoon(b, Request{Actual: 1})
		a.Refuses(Request{Actual: 1})
	}},
	{Name: "store/hold or nothing", Stored: true, Expects: "where another limit refuses, no estimate is taken from the store", Run: func(c *C) {
		a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, stored(withHold(10)), stored(perUser("user", 1))))
		a.Admits(1, Request{User: "ann", Cost: 1, Actual: 1})
		b.Refuses(Request{User: "ann", Cost: 9, Actual: 9})
		c.admitsSoon(a, Request{User: "bob", Cost: 9, Actual: 9}) // a front may answer before tokens are given back
		b.Refuses(Request{User: "cid", Cost: 1, Actual: 1})
	}},
	{Name: "store/in flight", Stored: true, Expects: "N requests are in flight at a time over all nodes, and one that ends makes room", Run: func(c *C) {
		a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, stored(concurrency(2))))
		first := c.beginInFlight(a, Request{})
		c.beginInFlight(b, Request{})
		c.Equal(time.Duration(0), a.Refuses(Request{}).RetryAfter, "Retry-After")
		c.beginInFlight(b, otherClient)
		first.End()
		c.admitsSoon(b, Request{})
	}},
	{Name: "store/in flight or nothing", Stored: true, Expects: "of limits in a store a request without a place takes no token, and one without token no place",
		Run: func(c *C) {
			a, b := c.startTwo(c.storeConfig(c.newStore(), Closed, stored(perClient("rate", 2)), stored(concurrency(1))))
			call := c.beginInFlight(a, Request{})
			for range 3 {
				b.Refuses(Request{})
			}
			call.End()
			c.admitsSoon(b, Request{})
			a.Refuses(Request{})
		}},
	{Name: "store/in flight reload", Stored: true,
		Expects: "a request that is in flight when a limit in a store changes keeps its place, also in a store that has forgotten it",
		Run: func(c *C) {
			s := c.newStore()
			a, b := c.startTwo(c.storeConfig(s, Closed, stored(concurrency(1))))
			call := c.beginInFlight(a, Request{})
			a.Reload(stored(concurrency(2)))
			s.Forget()
			c.Soon("its place is not renewed", func() bool {
				for range 5 { // an admitted request may leave a moment after its answer
					if b.Send(Request{}).Admitted {
						return false
					}
				}
				return true
			})
			second := c.beginInFlight(a, Request{})
			call.End()
			second.End()
			c.admitsSoon(b, Request{})
		}},
	lossCase(Open, "with the store lost, and \"open\", requests pass", func(n *Node) { n.Admits(9, Request{}) }),
	lossCase(Closed, "with the store lost, and \"closed\", requests fail, and not as refused by a limit", func(n *Node) {
		for range 3 {
			a := n.Send(Request{})
			n.c.Equal(false, a.Admitted, "admitted")
			n.c.Equal(true, a.Failed, "failed")
		}
	}),
	lossCase(Share, "with the store lost, and \"share\", a node admits its part of the limit", func(n *Node) { n.Exactly(3, Request{}) }),
	{Name: "store/late", Stored: true, Expects: "a store that does not answer holds no request up: what was said for its loss happens", Run: func(c *C) {
		s := c.newStore()
		n := c.StartWith(c.storeConfig(s, Closed, stored(perClient("a", 5))))
		n.Admits(1, Request{})
		s.Suspend()
		defer s.Resume()
		c.Equal(true, n.Send(Request{}).Failed, "failed")
	}},
	{Name: "store/back", Stored: true, Expects: "a store that is back counts on from where it was", Run: func(c *C) {
		s := c.newStore()
		a, b := c.startTwo(c.storeConfig(s, Closed, stored(perClient("a", 5))))
		a.Admits(2, Request{})
		b.Admits(1, Request{})
		s.Suspend()
		c.Soon("the store is not missed", func() bool { return a.Send(otherClient).Failed && b.Send(otherClient).Failed })
		s.Resume()
		c.Soon("the store is not found again", func() bool { return !a.Send(Request{User: "x", Client: "192.0.2.3"}).Failed })
		c.Soon("the store is not found again", func() bool { return !b.Send(Request{User: "x", Client: "192.0.2.4"}).Failed })
		c.AtMost(2, a.Admitted(5, Request{})+b.Admitted(5, Request{}), "of the two that were left")
		a.Refuses(Request{})
	}},
	{Name: "store/start", Stored: true, Expects: "with \"open\" a node starts without the store, and says so only in its log", Run: func(c *C) {
		s := c.newStore()
		s.Stop()
		c.StartWith(c.storeConfig(s, Open, stored(perClient("a", 5)))).Admits(9, Request{})
	}},
	{Name: "store/settings", Stored: true, Expects: "another rule for the loss of the store changes no count", Run: func(c *C) {
		n := c.StartWith(c.storeConfig(c.newStore(), Closed, stored(perClient("a", 5))))
		n.Admits(3, Request{})
		n.config.OnLoss = Open
		n.Reload(stored(perClient("a", 5)))
		n.Exactly(2, Request{})
	}},
	{Name: "store/moved", Stored: true, Expects: "a limit that moves into the store gives no full bucket", Run: func(c *C) {
		n := c.StartWith(c.storeConfig(c.newStore(), Closed, perClient("a", 5), stored(perUser("b", 9))))
		n.Exactly(5, Request{})
		n.Reload(stored(perClient("a", 5)), stored(perUser("b", 9)))
		n.Refuses(Request{})
		n.Admits(1, otherClient)
	}},
	{Name: "store/moved once", Stored: true, Expects: "a limit that moves into the store or out of it admits one burst more, and limits", Run: func(c *C) {
		n := c.StartWith(c.storeConfig(c.newStore(), Closed, perClient("a", 5)))
		n.Exactly(5, Request{})
		n.Reload(stored(perClient("a", 5)))
		c.AtMost(5, n.Admitted(9, Request{}), "in the store")
		n.Refuses(Request{})
		n.Reload(perClient("a", 5))
		c.AtMost(5, n.Admitted(9, Request{}), "in memory again")
		n.Refuses(Request{})
		n.Reload(stored(perClient("a", 5)))
		n.Refuses(Request{})
	}},
	{Name: "store/reload", Stored: true, Expects: "a raised limit in a store keeps what was used", Run: func(c *C) {
		n := c.StartWith(c.storeConfig(c.newStore(), Closed, stored(perClient("a", 5))))
		n.Exactly(5, Request{})
		n.Reload(stored(perClient("a", 8)))
		c.AtMost(3, n.Admitted(9, Request{}), "after a change from five to eight")
	}},
}

// sharedOrRefused expects that two nodes refuse to start, or that they together admit at most the given maximum of
// requests.
func (c *C) sharedOrRefused(l Limit, r Request, maximum int) {
	config := c.storeConfig(c.newStore(), Closed, l)
	a, err := c.try(config)
	switch {
	case errors.Is(err, ErrUnsupported):
		panic(&failure{err})
	case err != nil:
		return
	}
	b := c.StartWith(config)
	a.Admits(1, r)
	c.AtMost(maximum-1, a.Admitted(maximum, r)+b.Admitted(maximum, r), "on both nodes after the first")
}

// lossCase returns a case in which the store stops. The limit is six requests per hour.
func lossCase(loss Loss, expects string, then func(*Node)) *Case {
	return &Case{Name: "store/lost " + string(loss), Stored: true, Expects: expects, Run: func(c *C) {
		s := c.newStore()
		n := c.StartWith(c.storeConfig(s, loss, stored(perClient("a", 6))))
		n.Admits(1, otherClient)
		s.Stop()
		then(n)
	}}
}

var files = []*Case{
	{Name: "shared file/together", Files: true, Expects: "two processes on one machine admit together what the limit says", Run: func(c *C) {
		a, b := c.startTwo(Config{Limits: []Limit{perClient("a", 5)}, Dir: c.env.T.TempDir()})
		a.Admits(2, Request{})
		b.Exactly(3, Request{})
		a.Refuses(Request{})
	}},
	{Name: "shared file/restart", Files: true, Expects: "a restart gives no full bucket", Run: func(c *C) {
		config := Config{Limits: []Limit{perClient("a", 5)}, Dir: c.env.T.TempDir()}
		n := c.StartWith(config)
		n.Admits(3, Request{})
		n.Stop()
		c.StartWith(config).Exactly(2, Request{})
	}},
	{Name: "shared file/all or nothing", Files: true, Expects: "where a limit refuses, the others keep their tokens for all processes", Run: func(c *C) {
		a, b := c.startTwo(Config{Limits: []Limit{perClient("client", 3), perUser("user", 1)}, Dir: c.env.T.TempDir()})
		a.Exactly(1, ann)
		b.Refuses(ann)
		b.Admits(1, bob)
		a.Exactly(1, Request{User: "cid"})
	}},
	{Name: "shared file/in flight", Files: true, Expects: "requests in flight count over all processes", Run: func(c *C) {
		a, b := c.startTwo(Config{Limits: []Limit{concurrency(1)}, Dir: c.env.T.TempDir()})
		call := c.beginInFlight(a, Request{})
		b.Refuses(Request{})
		call.End()
		c.admitsSoon(b, Request{})
	}},
	{Name: "shared file/reload", Files: true, Expects: "a limit that one process raises keeps what all have used", Run: func(c *C) {
		a, b := c.startTwo(Config{Limits: []Limit{perClient("a", 5)}, Dir: c.env.T.TempDir()})
		a.Admits(3, Request{})
		b.Exactly(2, Request{})
		a.Reload(perClient("a", 8))
		c.AtMost(3, a.Admitted(9, Request{}), "after a change from five to eight")
	}},
}
