package conformance

import (
	"time"

	"github.com/weir-go/weir/engine"
)

// global returns a limit of one request per minute for all clients together, with a burst. (A bucket that takes hours
// to fill cannot be spread over processors.)
func global(burst uint64) Limit {
	return Limit{Name: "all", Key: Everyone, Numbers: Numbers{N: 1, Per: time.Minute, Burst: burst}}
}

func spread(burst uint64) Limit { l := global(burst); l.Spread = true; return l }

// fastSpread returns a spread limit of a million requests per second. At that rate, each processor holds tokens
// in advance.
func fastSpread(burst uint64) Limit {
	l := spread(burst)
	l.Numbers = Numbers{N: 1_000_000, Per: time.Second, Burst: burst}
	return l
}

var spreads = []*Case{
	{Name: "spread/one bucket", Expects: "a bucket on all processors is one for all clients, and what comes back is the limit's rate", Run: func(c *C) {
		l := spread(3)
		l.Numbers = Numbers{N: 1, Per: 10 * time.Second, Burst: 3}
		n := c.Start(l)
		n.Admits(1, Request{})
		n.Exactly(2, otherClient)
		c.Equal(10*time.Second, n.Refuses(Request{}).RetryAfter, "Retry-After")
		c.Advance(10 * time.Second)
		n.Exactly(1, otherClient)
	}},
	{Name: "spread/burst", Expects: "where processors hold tokens, the burst is admitted at once, and no more", Run: func(c *C) {
		n := c.Start(fastSpread(50))
		n.Admits(20, Request{})
		n.Exactly(30, otherClient)
		c.Advance(time.Second)
		n.Exactly(50, Request{})
	}},
	{Name: "spread/all or nothing", Expects: "what another limit refuses takes nothing from a bucket on all processors, and the other way round",
		Run: func(c *C) {
			n := c.Start(fastSpread(10), perClient("client", 4))
			n.Exactly(4, Request{})
			n.Exactly(4, otherClient)
			n.Exactly(2, Request{Client: "192.0.2.3"})
			c.Advance(time.Second)
			n.Admits(2, Request{Client: "192.0.2.3"})
		}},
	{Name: "spread/cost", Expects: "a request takes its cost, or nothing if that is not there", Run: func(c *C) {
		l := fastSpread(10)
		l.Cost = true
		n := c.Start(l)
		n.Admits(1, Request{Cost: 8})
		n.Refuses(Request{Cost: 3})
		n.Exactly(2, Request{})
	}},
	{Name: "spread/shadow", Expects: "in shadow mode it refuses nothing, and takes what it would take", Run: func(c *C) {
		n := c.Start(shadowed(spread(3)))
		n.Admits(5, Request{})
		n.Reload(spread(3))
		n.Refuses(Request{})
	}},
	{Name: "spread/reload", Expects: "a raised or lowered limit takes effect at once, for no more than the difference", Run: func(c *C) {
		n := c.Start(spread(5))
		n.Exactly(5, Request{})
		n.Reload(spread(8))
		n.Exactly(3, otherClient)
		n.Reload(spread(2))
		n.Refuses(Request{})
		n.Reload(spread(8))
		n.Refuses(Request{})
	}},
	{Name: "spread/to and fro", Expects: "a limit whose bucket is put on all processors, and no longer is, keeps what was used", Run: func(c *C) {
		n := c.Start(global(9))
		n.Admits(2, Request{})
		n.Reload(spread(9))
		n.Admits(2, Request{})
		n.Reload(global(9))
		n.Admits(2, Request{})
		n.Reload(spread(9))
		n.Exactly(3, Request{})
		n.Reload(global(9))
		n.Refuses(otherClient)
	}},
	{Name: "spread/algorithm", Expects: "a window whose limit becomes a bucket on all processors gives no full one", Run: func(c *C) {
		l := window("all", engine.AlgorithmFixedWindow, 5)
		l.Key = Everyone
		n := c.Start(l)
		n.Exactly(5, Request{})
		n.Reload(spread(5))
		n.Refuses(otherClient)
	}},
	{Name: "spread/blocked", Expects: "a limit that was 0 for a while gives no full bucket", Run: func(c *C) {
		n := c.Start(spread(5))
		n.Exactly(5, Request{})
		n.Reload(Limit{Name: "all", Key: Everyone, Numbers: Numbers{Constant: Blocked}})
		c.Equal(time.Duration(0), n.Refuses(otherClient).RetryAfter, "Retry-After")
		n.Reload(spread(5))
		n.Refuses(Request{})
	}},
}
