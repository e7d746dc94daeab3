package conformance

import (
	"errors"
	"time"

	"github.com/weir-go/weir/engine"
)

// reloadCase returns a case in which a limit changes. A key that has used its tokens must not have a full bucket
// afterwards.
func reloadCase(name, expects string, from, to Limit) *Case {
	return &Case{Name: "reload/" + name, Expects: expects, Run: func(c *C) {
		n := c.Start(from)
		n.Exactly(5, Request{})
		n.Reload(to)
		n.Refuses(Request{})
		n.Admits(1, otherClient)
	}}
}

// changed returns a limit of one request per hour with a burst of five, after a change.
func changed(change func(*Limit)) Limit { l := perClient("a", 5); change(&l); return l }

func slidingLog(n uint64) Limit { return window("a", engine.AlgorithmSlidingLog, n) }

var reloads = []*Case{
	{Name: "reload/same", Expects: "a reload without a change changes nothing", Run: func(c *C) {
		n := c.Start(perClient("a", 5))
		n.Admits(3, Request{})
		n.Reload(perClient("a", 5))
		n.Exactly(2, Request{})
	}},
	{Name: "reload/raised", Expects: "a raised limit takes effect at once, for no more than the difference", Run: func(c *C) {
		n := c.Start(perClient("a", 5))
		n.Exactly(5, Request{})
		n.Reload(perClient("a", 8))
		got := n.Admitted(9, Request{})
		c.AtMost(3, got, "after a change from five to eight")
		n.Exactly(8, otherClient)
	}},
	{Name: "reload/lowered", Expects: "a lowered limit takes effect at once", Run: func(c *C) {
		n := c.Start(perClient("a", 8))
		n.Admits(6, Request{})
		n.Reload(perClient("a", 3))
		c.AtMost(2, n.Admitted(4, Request{}), "of the two that were left")
		n.Exactly(3, otherClient)
	}},
	{Name: "reload/faster", Expects: "nobody waits longer under a faster rate than an empty bucket would", Run: func(c *C) {
		n := c.Start(perClient("a", 5))
		n.Exactly(5, Request{})
		n.Reload(perSecond("a", 5))
		c.AtMost(0, n.Admitted(1, Request{}), "at once")
		c.Advance(time.Second)
		n.Exactly(1, Request{})
	}},
	{Name: "reload/to and fro", Expects: "several changes in a row give nothing away", Run: func(c *C) {
		n := c.Start(perClient("a", 8))
		n.Exactly(8, Request{})
		n.Reload(perClient("a", 2))
		got := n.Admitted(3, Request{})
		n.Reload(perClient("a", 8))
		c.AtMost(0, got+n.Admitted(9, Request{}), "of a bucket that was empty")
	}},
	{Name: "reload/one tier", Expects: "the numbers of one tier change nothing for keys under another", Run: func(c *C) {
		l := plans()
		n := c.Start(l)
		n.Exactly(10, inTier("gold", "ann"))
		n.Admits(5, inTier("gold", "bob"))
		l = plans()
		l.Burst, l.Tiers[0].Burst = 1, 3
		n.Reload(l)
		n.Refuses(inTier("gold", "ann"))
		n.Exactly(5, inTier("gold", "bob"))
		n.Exactly(1, inTier("", "cid"))
		n.Exactly(3, inTier("paid", "dan"))
	}},
	{Name: "reload/own burst", Expects: "the limit's own burst changes nothing for keys under a tier", Run: func(c *C) {
		l := plans()
		l.Numbers = Numbers{N: 1, Per: time.Second, Burst: 1000}
		n := c.Start(l)
		n.Exactly(5, inTier("paid", "ann"))
		l.Numbers = Numbers{N: 1, Per: time.Second, Burst: 10}
		n.Reload(l)
		n.Refuses(inTier("paid", "ann"))
		c.Advance(time.Hour)
		n.Exactly(1, inTier("paid", "ann"))
	}},
	reloadCase("max_keys", "more room for keys gives no full bucket", perClient("a", 5), changed(func(l *Limit) { l.MaxKeys = 5000 })),
	reloadCase("overflow", "another rule for keys without room gives no full bucket", perClient("a", 5), changed(func(l *Limit) { l.Overflow = engine.Refuse })),
	reloadCase("algorithm", "another algorithm gives no full bucket", window("a", engine.AlgorithmFixedWindow, 5), slidingLog(5)),
	reloadCase("to a bucket", "a window that becomes a bucket gives no full one", window("a", engine.AlgorithmSlidingWindow, 5), perClient("a", 5)),
	reloadCase("more tiers", "another number of tiers gives no full bucket", perClient("a", 5), changed(func(l *Limit) { l.Tiers = []Tier{{"paid", hourly(9)}} })),
	{Name: "reload/fewer tiers", Expects: "a tier that is taken away gives no full bucket", Run: func(c *C) {
		n := c.Start(plans())
		n.Exactly(5, inTier("paid", "ann"))
		l := plans()
		l.Tiers = l.Tiers[1:]
		n.Reload(l)
		n.Refuses(inTier("", "ann"))
	}},
	{Name: "reload/log", Expects: "a larger sliding log gives no full bucket", Run: func(c *C) {
		n := c.Start(slidingLog(5))
		n.Exactly(5, Request{})
		n.Reload(slidingLog(20))
		c.AtMost(15, n.Admitted(21, Request{}), "after a change from 5 to 20")
		n.Exactly(20, otherClient)
	}},
	{Name: "reload/blocked", Expects: "a limit that was 0 for a while gives no full bucket", Run: func(c *C) {
		n := c.Start(perClient("a", 5))
		n.Exactly(5, Request{})
		n.Reload(Limit{Name: "a", Numbers: Numbers{Constant: Blocked}})
		n.Refuses(otherClient)
		n.Reload(perClient("a", 5))
		n.Refuses(Request{})
		n.Admits(1, otherClient)
	}},
	{Name: "reload/twice", Expects: "changes in a row that each need a new table give no full bucket", Run: func(c *C) {
		n := c.Start(perClient("a", 5))
		n.Exactly(5, Request{})
		for i := range 4 {
			n.Reload(changed(func(l *Limit) { l.MaxKeys = 2000 + i }))
			n.Refuses(Request{})
		}
	}},
}

// reloadBackCase returns a case in which a limit changes and then changes back. A key that has used its tokens must
// never have a full bucket.
func reloadBackCase(name, expects string, from, to Limit) *Case {
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
		n := c.Start(perClient("a", 5))
		n.Exactly(5, Request{})
		n.Reload(Limit{Name: "a", Numbers: Numbers{Constant: Unlimited}})
		n.Admits(20, Request{})
		n.Reload(perClient("a", 5))
		n.Refuses(Request{})
		n.Exactly(5, otherClient)
	}},
	reloadBackCase("aligned", "windows that begin with the clock, and no longer do, give no full bucket", fixedWindow("a", 5),
		Limit{Name: "a", Algorithm: engine.AlgorithmFixedWindow, Numbers: Numbers{N: 5, Per: time.Hour, Burst: 5, Aligned: true}}),
	reloadBackCase("zone", "a calendar in another time zone gives no full bucket", monthly(""), monthly("America/New_York")),
	reloadBackCase("users", "limits of known users that are added and removed give the others no full bucket", perUser("a", 5),
		func() Limit { l := perUser("a", 5); l.Users = map[string]Numbers{"cid": hourly(2)}; return l }()),
	{Name: "reload/ipv6_prefix", Expects: "another length of IPv6 prefixes gives clients with IPv4 no full bucket, and none to the others when it is back",
		Run: func(c *C) {
			six := Request{Client: "2001:db8::1"}
			n := c.Start(changed(func(l *Limit) { l.IPv6Prefix = 64 }))
			n.Exactly(5, Request{})
			n.Exactly(5, six)
			n.Reload(changed(func(l *Limit) { l.IPv6Prefix = 48 }))
			n.Refuses(Request{})
			n.Reload(changed(func(l *Limit) { l.IPv6Prefix = 64 }))
			n.Refuses(Request{})
			n.Refuses(six)
		}},
	{Name: "reload/to a file", Files: true, Expects: "a limit that moves into a shared file gives no full bucket", Run: func(c *C) {
		n := c.Start(perClient("a", 5))
		n.Exactly(5, Request{})
		n.ReloadIn(c.env.T.TempDir())
		n.Refuses(Request{})
		n.Exactly(5, otherClient)
	}},
	{Name: "reload/out of a file", Files: true, Expects: "a limit that leaves its shared file is a new one, because others count in the file, which keeps its counts",
		Run: func(c *C) {
			dir := c.env.T.TempDir()
			n := c.StartWith(Config{Limits: []Limit{perClient("a", 5)}, Dir: dir})
			n.Exactly(5, Request{})
			n.ReloadIn("")
			n.Exactly(5, Request{})
			n.ReloadIn(dir)
			n.Refuses(Request{})
			n.Exactly(5, otherClient)
		}},
}

var reloadRules = []*Case{
	{Name: "reload/renamed", Expects: "a renamed limit is a new one", Run: func(c *C) {
		n := c.Start(perClient("a", 2))
		n.Exactly(2, Request{})
		n.Reload(perClient("b", 2))
		n.Exactly(2, Request{})
	}},
	{Name: "reload/another key", Expects: "a limit by another key is a new one", Run: func(c *C) {
		n := c.Start(perClient("a", 2))
		n.Exactly(2, ann)
		n.Reload(perUser("a", 2))
		n.Exactly(2, ann)
		n.Exactly(2, bob)
	}},
	{Name: "reload/added", Expects: "a limit that is added counts from then on, and the others keep what they have used", Run: func(c *C) {
		n := c.Start(perClient("a", 5))
		n.Admits(3, Request{})
		n.Reload(perUser("b", 1), perClient("a", 5))
		n.Exactly(1, ann)
		n.Exactly(1, bob)
	}},
	{Name: "reload/removed", Expects: "a limit that is removed limits no more, and when it is back again it does", Run: func(c *C) {
		n := c.Start(perClient("a", 2), perClient("b", 9))
		n.Exactly(2, Request{})
		n.Reload(perClient("b", 9))
		n.Admits(5, Request{})
		n.Reload(perClient("a", 2), perClient("b", 9))
		c.AtMost(2, n.Admitted(3, Request{}), "of a limit of two")
		n.Exactly(2, otherClient)
	}},
	{Name: "reload/order", Expects: "another order of the limits changes nothing", Run: func(c *C) {
		n := c.Start(perClient("a", 5), perUser("b", 5))
		n.Admits(3, ann)
		n.Reload(perUser("b", 5), perClient("a", 5))
		n.Exactly(2, ann)
	}},
	{Name: "reload/match", Expects: "a limit for other requests keeps what was used", Run: func(c *C) {
		n := c.Start(atPath("/a", "a", 3))
		n.Exactly(3, Request{Path: "/a"})
		n.Reload(atPath("/b", "a", 3))
		n.Refuses(Request{Path: "/b"})
		n.Admits(4, Request{Path: "/a"})
	}},
	{Name: "reload/mistake", Expects: "a configuration with a mistake is refused and changes nothing", Run: func(c *C) {
		n := c.Start(perClient("a", 5))
		n.Admits(3, Request{})
		bad := n.config
		bad.Limits = []Limit{perClient("a", 9), {Name: "b", Numbers: Numbers{N: 1, Per: time.Hour, Burst: 1 << 40}}}
		switch err := n.server.Reload(bad); {
		case err == nil:
			c.Fatalf("a burst of 2^40 is taken")
		case errors.Is(err, ErrUnsupported):
			panic(&failure{err})
		}
		n.Exactly(2, Request{})
	}},
}
