package conformance

import (
	"errors"
	"time"

	"github.com/weir-go/weir/engine"
)

// keeps returns a case in which a limit changes. A key that has used its tokens must not have a full bucket afterwards.
func keeps(name, expects string, from, to Limit) *Case {
	return &Case{Name: "reload/" + name, Expects: expects, Run: func(c *C) {
		n := c.Start(from)
		n.Exactly(5, Request{})
		n.Reload(to)
		n.Refuses(Request{})
		n.Admits(1, other)
	}}
}

// The function with returns a limit of one request per hour with a burst of five, after a change.
func with(change func(*Limit)) Limit { l := each("a", 5); change(&l); return l }

func log(n uint64) Limit { return window("a", engine.AlgorithmSlidingLog, n) }

var reloads = []*Case{
	{Name: "reload/same", Expects: "a reload without a change changes nothing", Run: func(c *C) {
		n := c.Start(each("a", 5))
		n.Admits(3, Request{})
		n.Reload(each("a", 5))
		n.Exactly(2, Request{})
	}},
	{Name: "reload/raised", Expects: "a raised limit takes effect at once, for no more than the difference", Run: func(c *C) {
		n := c.Start(each("a", 5))
		n.Exactly(5, Request{})
		n.Reload(each("a", 8))
		got := n.Admitted(9, Request{})
		c.AtMost(3, got, "after a change from five to eight")
		n.Exactly(8, other)
	}},
	{Name: "reload/lowered", Expects: "a lowered limit takes effect at once", Run: func(c *C) {
		n := c.Start(each("a", 8))
		n.Admits(6, Request{})
		n.Reload(each("a", 3))
		c.AtMost(2, n.Admitted(4, Request{}), "of the two that were left")
		n.Exactly(3, other)
	}},
	{Name: "reload/faster", Expects: "nobody waits longer under a faster rate than an empty bucket would", Run: func(c *C) {
		n := c.Start(each("a", 5))
		n.Exactly(5, Request{})
		n.Reload(perSecond("a", 5))
		c.AtMost(0, n.Admitted(1, Request{}), "at once")
		c.Advance(time.Second)
		n.Exactly(1, Request{})
	}},
	{Name: "reload/to and fro", Expects: "several changes in a row give nothing away", Run: func(c *C) {
		n := c.Start(each("a", 8))
		n.Exactly(8, Request{})
		n.Reload(each("a", 2))
		got := n.Admitted(3, Request{})
		n.Reload(each("a", 8))
		c.AtMost(0, got+n.Admitted(9, Request{}), "of a bucket that was empty")
	}},
	{Name: "reload/one tier", Expects: "the numbers of one tier change nothing for keys under another", Run: func(c *C) {
		l := plans()
		n := c.Start(l)
		n.Exactly(10, in("gold", "ann"))
		n.Admits(5, in("gold", "bob"))
		l = plans()
		l.Burst, l.Tiers[0].Burst = 1, 3
		n.Reload(l)
		n.Refuses(in("gold", "ann"))
		n.Exactly(5, in("gold", "bob"))
		n.Exactly(1, in("", "cid"))
		n.Exactly(3, in("paid", "dan"))
	}},
	{Name: "reload/own burst", Expects: "the limit's own burst changes nothing for keys under a tier", Run: func(c *C) {
		l := plans()
		l.Numbers = Numbers{N: 1, Per: time.Second, Burst: 1000}
		n := c.Start(l)
		n.Exactly(5, in("paid", "ann"))
		l.Numbers = Numbers{N: 1, Per: time.Second, Burst: 10}
		n.Reload(l)
		n.Refuses(in("paid", "ann"))
		c.Advance(time.Hour)
		n.Exactly(1, in("paid", "ann"))
	}},
	keeps("max_keys", "more room for keys gives no full bucket", each("a", 5), with(func(l *Limit) { l.MaxKeys = 5000 })),
	keeps("overflow", "another rule for keys without room gives no full bucket", each("a", 5), with(func(l *Limit) { l.Overflow = engine.Refuse })),
	keeps("algorithm", "another algorithm gives no full bucket", window("a", engine.AlgorithmFixedWindow, 5), log(5)),
	keeps("to a bucket", "a window that becomes a bucket gives no full one", window("a", engine.AlgorithmSlidingWindow, 5), each("a", 5)),
	keeps("more tiers", "another number of tiers gives no full bucket", each("a", 5), with(func(l *Limit) { l.Tiers = []Tier{{"paid", hourly(9)}} })),
	{Name: "reload/fewer tiers", Expects: "a tier that is taken away gives no full bucket", Run: func(c *C) {
		n := c.Start(plans())
		n.Exactly(5, in("paid", "ann"))
		l := plans()
		l.Tiers = l.Tiers[1:]
		n.Reload(l)
		n.Refuses(in("", "ann"))
	}},
	{Name: "reload/log", Expects: "a larger sliding log gives no full bucket", Run: func(c *C) {
		n := c.Start(log(5))
		n.Exactly(5, Request{})
		n.Reload(log(20))
		c.AtMost(15, n.Admitted(21, Request{}), "after a change from 5 to 20")
		n.Exactly(20, other)
	}},
	{Name: "reload/blocked", Expects: "a limit that was 0 for a while gives no full bucket", Run: func(c *C) {
		n := c.Start(each("a", 5))
		n.Exactly(5, Request{})
		n.Reload(Limit{Name: "a", Numbers: Numbers{Constant: Blocked}})
		n.Refuses(other)
		n.Reload(each("a", 5))
		n.Refuses(Request{})
		n.Admits(1, other)
	}},
	{Name: "reload/twice", Expects: "changes in a row that each need a new table give no full bucket", Run: func(c *C) {
		n := c.Start(each("a", 5))
		n.Exactly(5, Request{})
		for i := range 4 {
			n.Reload(with(func(l *Limit) { l.MaxKeys = 2000 + i }))
			n.Refuses(Request{})
		}
	}},
}

// toAndFro returns a case in which a limit changes and then changes back. A key that has used its tokens must never
// have a full bucket.
func toAndFro(name, expects string, from, to Limit) *Case {
	return &Case{Name: "reload/" + name, Expects: expects, Run: func(c *C) {
		n := c.Start(from)
		c.Advance(100 * time.Minute) // so that new windows of the clock and of the calendar have begun
		n.Exactly(5, ann)
		n.Reload(to)
		n.Refuses(ann)
		n.Admits(1, otherUser)
		n.Reload(from)
		n.Refuses(ann)
		n.Admits(1, otherUser)
	}}
}

var otherUser = Request{Client: "192.0.2.2", User: "bob"}

func monthly(zone string) Limit {
	return Limit{Name: "a", Algorithm: engine.AlgorithmFixedWindow, Numbers: Numbers{N: 5, Calendar: engine.Month, Zone: zone}}
}

var reloadSettings = []*Case{
	{Name: "reload/unlimited", Expects: "a limit that was unlimited for a while gives no full bucket", Run: func(c *C) {
		n := c.Start(each("a", 5))
		n.Exactly(5, Request{})
		n.Reload(Limit{Name: "a", Numbers: Numbers{Constant: Unlimited}})
		n.Admits(20, Request{})
		n.Reload(each("a", 5))
		n.Refuses(Request{})
		n.Exactly(5, other)
	}},
	toAndFro("aligned", "windows that begin with the clock, and no longer do, give no full bucket", perHourOf("a", 5),
		Limit{Name: "a", Algorithm: engine.AlgorithmFixedWindow, Numbers: Numbers{N: 5, Per: time.Hour, Burst: 5, Aligned: true}}),
	toAndFro("zone", "a calendar in another time zone gives no full bucket", monthly(""), monthly("America/New_York")),
	toAndFro("users", "limits of known users that are added and removed give the others no full bucket", byUser("a", 5),
		func() Limit { l := byUser("a", 5); l.Users = map[string]Numbers{"cid": hourly(2)}; return l }()),
	{Name: "reload/ipv6_prefix", Expects: "another length of IPv6 prefixes gives clients with IPv4 no full bucket, and none to the others when it is back",
		Run: func(c *C) {
			six := Request{Client: "2001:db8::1"}
			n := c.Start(with(func(l *Limit) { l.IPv6Prefix = 64 }))
			n.Exactly(5, Request{})
			n.Exactly(5, six)
			n.Reload(with(func(l *Limit) { l.IPv6Prefix = 48 }))
			n.Refuses(Request{})
			n.Reload(with(func(l *Limit) { l.IPv6Prefix = 64 }))
			n.Refuses(Request{})
			n.Refuses(six)
		}},
	{Name: "reload/to a file", Files: true, Expects: "a limit that moves into a shared file gives no full bucket", Run: func(c *C) {
		n := c.Start(each("a", 5))
		n.Exactly(5, Request{})
		n.ReloadIn(c.env.T.TempDir())
		n.Refuses(Request{})
		n.Exactly(5, other)
	}},
	{Name: "reload/out of a file", Files: true, Expects: "a limit that leaves its shared file is a new one, because others count in the file, which keeps its counts",
		Run: func(c *C) {
			dir := c.env.T.TempDir()
			n := c.StartWith(Config{Limits: []Limit{each("a", 5)}, Dir: dir})
			n.Exactly(5, Request{})
			n.ReloadIn("")
			n.Exactly(5, Request{})
			n.ReloadIn(dir)
			n.Refuses(Request{})
			n.Exactly(5, other)
		}},
}

var reloadRules = []*Case{
	{Name: "reload/renamed", Expects: "a renamed limit is a new one", Run: func(c *C) {
		n := c.Start(each("a", 2))
		n.Exactly(2, Request{})
		n.Reload(each("b", 2))
		n.Exactly(2, Request{})
	}},
	{Name: "reload/another key", Expects: "a limit by another key is a new one", Run: func(c *C) {
		n := c.Start(each("a", 2))
		n.Exactly(2, ann)
		n.Reload(byUser("a", 2))
		n.Exactly(2, ann)
		n.Exactly(2, bob)
	}},
	{Name: "reload/added", Expects: "a limit that is added counts from then on, and the others keep what they have used", Run: func(c *C) {
		n := c.Start(each("a", 5))
		n.Admits(3, Request{})
		n.Reload(byUser("b", 1), each("a", 5))
		n.Exactly(1, ann)
		n.Exactly(1, bob)
	}},
	{Name: "reload/removed", Expects: "a limit that is removed limits no more, and when it is back again it does", Run: func(c *C) {
		n := c.Start(each("a", 2), each("b", 9))
		n.Exactly(2, Request{})
		n.Reload(each("b", 9))
		n.Admits(5, Request{})
		n.Reload(each("a", 2), each("b", 9))
		c.AtMost(2, n.Admitted(3, Request{}), "of a limit of two")
		n.Exactly(2, other)
	}},
	{Name: "reload/order", Expects: "another order of the limits changes nothing", Run: func(c *C) {
		n := c.Start(each("a", 5), byUser("b", 5))
		n.Admits(3, ann)
		n.Reload(byUser("b", 5), each("a", 5))
		n.Exactly(2, ann)
	}},
	{Name: "reload/match", Expects: "a limit for other requests keeps what was used", Run: func(c *C) {
		n := c.Start(at("/a", "a", 3))
		n.Exactly(3, Request{Path: "/a"})
		n.Reload(at("/b", "a", 3))
		n.Refuses(Request{Path: "/b"})
		n.Admits(4, Request{Path: "/a"})
	}},
	{Name: "reload/mistake", Expects: "a configuration with a mistake is refused and changes nothing", Run: func(c *C) {
		n := c.Start(each("a", 5))
		n.Admits(3, Request{})
		bad := n.config
		bad.Limits = []Limit{each("a", 9), {Name: "b", Numbers: Numbers{N: 1, Per: time.Hour, Burst: 1 << 40}}}
		switch err := n.server.Reload(bad); {
		case err == nil:
			c.Fatalf("a burst of 2^40 is taken")
		case errors.Is(err, ErrUnsupported):
			panic(&failure{err})
		}
		n.Exactly(2, Request{})
	}},
}
