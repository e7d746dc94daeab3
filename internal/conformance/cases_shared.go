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

func (c *C) stored(s *Store, loss Loss, limits ...Limit) Config {
	return Config{Limits: limits, Store: s, Nodes: 2, OnLoss: loss}
}

func (c *C) together(config Config) (a, b *Node) { return c.StartWith(config), c.StartWith(config) }

var stores = []*Case{
	{Name: "store/together", Stored: true, Expects: "two nodes admit together what the limit says", Run: func(c *C) {
		a, b := c.together(c.stored(c.newStore(), Closed, stored(each("a", 5))))
		a.Admits(2, Request{})
		b.Exactly(3, Request{})
		a.Refuses(Request{})
		b.Exactly(5, other)
	}},
	{Name: "store/all or nothing", Stored: true, Expects: "of two limits in a store, where one refuses, the other keeps its tokens", Run: func(c *C) {
		a, b := c.together(c.stored(c.newStore(), Closed, stored(each("client", 3)), stored(byUser("user", 1))))
		a.Exactly(1, ann)
		b.Refuses(ann)
		b.Admits(1, bob)
		a.Exactly(1, Request{User: "cid"})
	}},
	{Name: "store/and memory", Stored: true, Expects: "where a limit in memory refuses, one in the store keeps its tokens, and the other way round",
		Run: func(c *C) {
			n := c.StartWith(c.stored(c.newStore(), Closed, stored(each("store", 3)), byUser("memory", 1)))
			n.Exactly(1, ann)
			n.Refuses(ann)
			n.Admits(1, bob)
			n.Exactly(1, Request{User: "cid"})
			n.Refuses(Request{User: "dan"})
			n.Exactly(1, Request{Client: "192.0.2.2", User: "dan"})
		}},
	{Name: "store/tiers", Stored: true, Expects: "tiers hold over all nodes", Run: func(c *C) {
		a, b := c.together(c.stored(c.newStore(), Closed, stored(plans()), stored(each("client", 30))))
		a.Admits(2, in("paid", "ann"))
		b.Exactly(3, in("paid", "ann"))
		a.Exactly(10, in("gold", "bob"))
		b.Exactly(2, in("unheard of", "cid"))
	}},
	{Name: "store/tier change", Stored: true, Expects: "a key that moves to another tier keeps what it has used in the store", Run: func(c *C) {
		a, b := c.together(c.stored(c.newStore(), Closed, stored(plans())))
		a.Exactly(5, in("paid", "ann"))
		b.Exactly(5, in("gold", "ann"))
		a.Refuses(in("", "ann"))
		b.Refuses(in("paid", "ann"))
	}},
	{Name: "store/tier of none", Stored: true, Expects: "of tiers in a store one may be unlimited and one 0", Run: func(c *C) {
		l := stored(plans())
		l.Tiers[0].Numbers, l.Tiers[1].Numbers = Numbers{Constant: Unlimited}, Numbers{Constant: Blocked}
		a, b := c.together(c.stored(c.newStore(), Closed, l))
		a.Admits(20, in("paid", "ann"))
		b.Refuses(in("gold", "ann"))
		a.Exactly(2, in("", "ann"))
		b.Refuses(in("", "ann"))
	}},
	{Name: "store/quota", Stored: true, Expects: "the limits that requests carry hold over all nodes, and a key keeps what it has used", Run: func(c *C) {
		a, b := c.together(c.stored(c.newStore(), Closed, stored(carried()), stored(each("client", 30))))
		a.Admits(2, carrying("ann", 4))
		b.Exactly(2, carrying("ann", 4))
		c.AtMost(2, a.Admitted(3, carrying("ann", 6)), "after four of six")
		b.Exactly(2, Request{User: "bob"})
		a.Refuses(Request{User: "bob"})
	}},
	{Name: "store/users", Stored: true, Expects: "the limits of known users hold over all nodes, and a user whose limit changes keeps what it has used",
		Run: func(c *C) {
			of := func(ann uint64) Limit {
				return stored(told(map[string]Numbers{"ann": hourly(ann), "bob": {N: 3, Per: time.Hour, Burst: 6},
					"cid": {Constant: Blocked}, "dan": {Constant: Unlimited}}))
			}
			a, b := c.together(c.stored(c.newStore(), Closed, of(4), stored(each("client", 60))))
			a.Admits(1, Request{User: "ann"})
			b.Exactly(3, Request{User: "ann"})
			a.Exactly(6, Request{User: "bob"})
			b.Refuses(Request{User: "bob"})
			a.Refuses(Request{User: "cid"})
			a.Admits(20, Request{User: "dan"})
			b.Exactly(2, Request{User: "eve"})
			a.Refuses(Request{User: "eve"})
			a.Reload(of(7), stored(each("client", 60)))
			c.AtMost(3, a.Admitted(4, Request{User: "ann"}), "after four of seven")
		}},
	{Name: "store/batch refill", Stored: true, Expects: "a batch refill holds over all nodes, or the configuration is refused", Run: func(c *C) {
		c.sharedOrRefused(stored(window("a", engine.AlgorithmBatchRefill, 4)), Request{}, 4)
	}},
	{Name: "store/wait", Stored: true, Expects: "a limit that may be waited for holds over all nodes, or the configuration is refused", Run: func(c *C) {
		l := stored(each("a", 4))
		l.MaxWait = time.Millisecond
		c.sharedOrRefused(l, Request{}, 4)
	}},
	{Name: "store/overflow", Stored: true, Expects: "a limit that refuses new keys without room holds over all nodes, or the configuration is refused",
		Run: func(c *C) {
			l := stored(each("a", 4))
			l.Overflow = engine.Refuse
			c.sharedOrRefused(l, Request{}, 4)
		}},
	{Name: "store/hold", Stored: true, Expects: "an estimate counts over all nodes, and so does what a request cost less or more", Run: func(c *C) {
		a, b := c.together(c.stored(c.newStore(), Closed, stored(estimated(10))))
		call := a.Begin(Request{Cost: 8, Actual: 3})
		c.Equal(true, call.Arrived(), "the server has the request")
		b.Refuses(Request{Cost: 3, Actual: 3})
		call.End()
		c.gets(b, Request{Cost: 2, Actual: 6})
		c.Soon("the rest is not charged", func() bool { return !a.Send(Request{Cost: 2}).Admitted })
		c.gets(b, Request{Actual: 1})
		a.Refuses(Request{Actual: 1})
	}},
	{Name: "store/hold or nothing", Stored: true, Expects: "where another limit refuses, no estimate is taken from the store", Run: func(c *C) {
		a, b := c.together(c.stored(c.newStore(), Closed, stored(estimated(10)), stored(byUser("user", 1))))
		a.Admits(1, Request{User: "ann", Cost: 1, Actual: 1})
		b.Refuses(Request{User: "ann", Cost: 9, Actual: 9})
		c.gets(a, Request{User: "bob", Cost: 9, Actual: 9}) // a front may answer before tokens are given back
		b.Refuses(Request{User: "cid", Cost: 1, Actual: 1})
	}},
	{Name: "store/in flight", Stored: true, Expects: "N requests are in flight at a time over all nodes, and one that ends makes room", Run: func(c *C) {
		a, b := c.together(c.stored(c.newStore(), Closed, stored(busy(2))))
		first := c.under(a, Request{})
		c.under(b, Request{})
		c.Equal(time.Duration(0), a.Refuses(Request{}).RetryAfter, "Retry-After")
		c.under(b, other)
		first.End()
		c.gets(b, Request{})
	}},
	{Name: "store/in flight or nothing", Stored: true, Expects: "of limits in a store a request without a place takes no token, and one without token no place",
		Run: func(c *C) {
			a, b := c.together(c.stored(c.newStore(), Closed, stored(each("rate", 2)), stored(busy(1))))
			call := c.under(a, Request{})
			for range 3 {
				b.Refuses(Request{})
			}
			call.End()
			c.gets(b, Request{})
			a.Refuses(Request{})
		}},
	{Name: "store/in flight reload", Stored: true,
		Expects: "a request that is in flight when a limit in a store changes keeps its place, also in a store that has forgotten it",
		Run: func(c *C) {
			s := c.newStore()
			a, b := c.together(c.stored(s, Closed, stored(busy(1))))
			call := c.under(a, Request{})
			a.Reload(stored(busy(2)))
			s.Forget()
			c.Soon("its place is not renewed", func() bool {
				for range 5 { // an admitted request may leave a moment after its answer
					if b.Send(Request{}).Admitted {
						return false
					}
				}
				return true
			})
			second := c.under(a, Request{})
			call.End()
			second.End()
			c.gets(b, Request{})
		}},
	lost(Open, "with the store lost, and \"open\", requests pass", func(n *Node) { n.Admits(9, Request{}) }),
	lost(Closed, "with the store lost, and \"closed\", requests fail, and not as refused by a limit", func(n *Node) {
		for range 3 {
			a := n.Send(Request{})
			n.c.Equal(false, a.Admitted, "admitted")
			n.c.Equal(true, a.Failed, "failed")
		}
	}),
	lost(Share, "with the store lost, and \"share\", a node admits its part of the limit", func(n *Node) { n.Exactly(3, Request{}) }),
	{Name: "store/late", Stored: true, Expects: "a store that does not answer holds no request up: what was said for its loss happens", Run: func(c *C) {
		s := c.newStore()
		n := c.StartWith(c.stored(s, Closed, stored(each("a", 5))))
		n.Admits(1, Request{})
		s.Suspend()
		defer s.Resume()
		c.Equal(true, n.Send(Request{}).Failed, "failed")
	}},
	{Name: "store/back", Stored: true, Expects: "a store that is back counts on from where it was", Run: func(c *C) {
		s := c.newStore()
		a, b := c.together(c.stored(s, Closed, stored(each("a", 5))))
		a.Admits(2, Request{})
		b.Admits(1, Request{})
		s.Suspend()
		c.Soon("the store is not missed", func() bool { return a.Send(other).Failed && b.Send(other).Failed })
		s.Resume()
		c.Soon("the store is not found again", func() bool { return !a.Send(Request{User: "x", Client: "192.0.2.3"}).Failed })
		c.Soon("the store is not found again", func() bool { return !b.Send(Request{User: "x", Client: "192.0.2.4"}).Failed })
		c.AtMost(2, a.Admitted(5, Request{})+b.Admitted(5, Request{}), "of the two that were left")
		a.Refuses(Request{})
	}},
	{Name: "store/start", Stored: true, Expects: "with \"open\" a node starts without the store, and says so only in its log", Run: func(c *C) {
		s := c.newStore()
		s.Stop()
		c.StartWith(c.stored(s, Open, stored(each("a", 5)))).Admits(9, Request{})
	}},
	{Name: "store/settings", Stored: true, Expects: "another rule for the loss of the store changes no count", Run: func(c *C) {
		n := c.StartWith(c.stored(c.newStore(), Closed, stored(each("a", 5))))
		n.Admits(3, Request{})
		n.config.OnLoss = Open
		n.Reload(stored(each("a", 5)))
		n.Exactly(2, Request{})
	}},
	{Name: "store/moved", Stored: true, Expects: "a limit that moves into the store gives no full bucket", Run: func(c *C) {
		n := c.StartWith(c.stored(c.newStore(), Closed, each("a", 5), stored(byUser("b", 9))))
		n.Exactly(5, Request{})
		n.Reload(stored(each("a", 5)), stored(byUser("b", 9)))
		n.Refuses(Request{})
		n.Admits(1, other)
	}},
	{Name: "store/moved once", Stored: true, Expects: "a limit that moves into the store or out of it admits one burst more, and limits", Run: func(c *C) {
		n := c.StartWith(c.stored(c.newStore(), Closed, each("a", 5)))
		n.Exactly(5, Request{})
		n.Reload(stored(each("a", 5)))
		c.AtMost(5, n.Admitted(9, Request{}), "in the store")
		n.Refuses(Request{})
		n.Reload(each("a", 5))
		c.AtMost(5, n.Admitted(9, Request{}), "in memory again")
		n.Refuses(Request{})
		n.Reload(stored(each("a", 5)))
		n.Refuses(Request{})
	}},
	{Name: "store/reload", Stored: true, Expects: "a raised limit in a store keeps what was used", Run: func(c *C) {
		n := c.StartWith(c.stored(c.newStore(), Closed, stored(each("a", 5))))
		n.Exactly(5, Request{})
		n.Reload(stored(each("a", 8)))
		c.AtMost(3, n.Admitted(9, Request{}), "after a change from five to eight")
	}},
}

// sharedOrRefused expects that two nodes refuse to start, or that they together admit at most the given number of
// requests (most).
func (c *C) sharedOrRefused(l Limit, r Request, most int) {
	config := c.stored(c.newStore(), Closed, l)
	a, err := c.try(config)
	switch {
	case errors.Is(err, ErrUnsupported):
		panic(&failure{err})
	case err != nil:
		return
	}
	b := c.StartWith(config)
	a.Admits(1, r)
	c.AtMost(most-1, a.Admitted(most, r)+b.Admitted(most, r), "on both nodes after the first")
}

// lost returns a case in which the store stops. The limit is six requests per hour.
func lost(loss Loss, expects string, then func(*Node)) *Case {
	return &Case{Name: "store/lost " + string(loss), Stored: true, Expects: expects, Run: func(c *C) {
		s := c.newStore()
		n := c.StartWith(c.stored(s, loss, stored(each("a", 6))))
		n.Admits(1, other)
		s.Stop()
		then(n)
	}}
}

var files = []*Case{
	{Name: "shared file/together", Files: true, Expects: "two processes on one machine admit together what the limit says", Run: func(c *C) {
		a, b := c.together(Config{Limits: []Limit{each("a", 5)}, Dir: c.env.T.TempDir()})
		a.Admits(2, Request{})
		b.Exactly(3, Request{})
		a.Refuses(Request{})
	}},
	{Name: "shared file/restart", Files: true, Expects: "a restart gives no full bucket", Run: func(c *C) {
		config := Config{Limits: []Limit{each("a", 5)}, Dir: c.env.T.TempDir()}
		n := c.StartWith(config)
		n.Admits(3, Request{})
		n.Stop()
		c.StartWith(config).Exactly(2, Request{})
	}},
	{Name: "shared file/all or nothing", Files: true, Expects: "where a limit refuses, the others keep their tokens for all processes", Run: func(c *C) {
		a, b := c.together(Config{Limits: []Limit{each("client", 3), byUser("user", 1)}, Dir: c.env.T.TempDir()})
		a.Exactly(1, ann)
		b.Refuses(ann)
		b.Admits(1, bob)
		a.Exactly(1, Request{User: "cid"})
	}},
	{Name: "shared file/in flight", Files: true, Expects: "requests in flight count over all processes", Run: func(c *C) {
		a, b := c.together(Config{Limits: []Limit{busy(1)}, Dir: c.env.T.TempDir()})
		call := c.under(a, Request{})
		b.Refuses(Request{})
		call.End()
		c.gets(b, Request{})
	}},
	{Name: "shared file/reload", Files: true, Expects: "a limit that one process raises keeps what all have used", Run: func(c *C) {
		a, b := c.together(Config{Limits: []Limit{each("a", 5)}, Dir: c.env.T.TempDir()})
		a.Admits(3, Request{})
		b.Exactly(2, Request{})
		a.Reload(each("a", 8))
		c.AtMost(3, a.Admitted(9, Request{}), "after a change from five to eight")
	}},
}
