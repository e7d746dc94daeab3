package conformance

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
)

// Numbers are the numbers of one limit. A window admits N tokens in Per. A token bucket gets N tokens in Per and has
// room for Burst tokens.
type Numbers struct {
	N     uint64
	Per   time.Duration
	Burst uint64
	// Calendar is a period of the calendar. For a fixed window, it replaces Per. Zone is the name of the period's time
	// zone, "" for UTC.
	Calendar engine.Period
	Zone     string
	Aligned  bool // fixed windows begin at multiples of their length since 1970
	// Constant is Unlimited or Blocked. If it is set, it replaces the numbers.
	Constant Constant
}

// A Constant is a limit without numbers.
type Constant uint8

const (
	Unlimited Constant = iota + 1 // admits every request
	Blocked                       // refuses every request
)

// Policy returns the engine's policy of the numbers.
func (n Numbers) Policy(a engine.Algorithm) engine.Policy {
	switch {
	case n.Constant == Unlimited:
		return engine.Unlimited()
	case n.Constant == Blocked:
		return engine.Blocked()
	case n.Calendar != 0:
		zone, err := time.LoadLocation(n.Zone)
		if err != nil {
			panic(err)
		}
		return engine.CalendarWindow(n.N, n.Calendar, zone)
	case n.Aligned:
		return engine.FixedWindow(n.N, n.Per).Aligned()
	case a == engine.AlgorithmFixedWindow:
		return engine.FixedWindow(n.N, n.Per)
	case a == engine.AlgorithmSlidingWindow:
		return engine.SlidingWindow(n.N, n.Per)
	case a == engine.AlgorithmSlidingLog:
		return engine.SlidingLog(n.N, n.Per)
	case a == engine.AlgorithmBatchRefill:
		return engine.BatchRefill(n.N, n.Per, n.Burst)
	}
	return engine.TokenBucket(engine.Per(float64(n.N), n.Per), n.Burst)
}

// An Attribute is the part of a request that selects its bucket.
type Attribute string

const (
	Client Attribute = "client" // the client's address
	User   Attribute = "user"   // a name that comes with the request
	// Everyone selects one bucket for all requests.
	Everyone Attribute = "everyone"
)

// A Tier is the limit of the requests that carry its name.
type Tier struct {
	Name string
	Numbers
}

// A Loss says how requests are decided while the store is unreachable.
type Loss string

const (
	Share  Loss = "share"  // each node admits its share
	Open   Loss = "open"   // requests pass
	Closed Loss = "closed" // requests fail
)

// A Limit is one limit as a user would describe it.
type Limit struct {
	Name string
	Path string    // the path of the requests to which the limit applies, such as "/a"; "" means all requests
	Key  Attribute // "" means Client
	// Algorithm is the algorithm. 0 means the token bucket.
	Algorithm engine.Algorithm
	Numbers
	Tiers []Tier
	// Concurrency is how many requests may be in flight at the same time. If it is set, it replaces Numbers.
	Concurrency uint64
	Cost        bool // a request states its cost
	Quota       bool // a request may carry its own numbers
	// Users are the numbers of some users. The front gets them from outside its configuration: from a file, or from a
	// function of the program.
	Users map[string]Numbers
	// Hold says that the cost is an estimate. When the request ends, the estimate is settled with Request.Actual.
	Hold bool
	// Refund is the outcome of the requests that get their cost back. If it is "", no request gets its cost back.
	Refund   Outcome
	MaxWait  time.Duration
	Shadow   bool
	MaxKeys  int                   // 0 means 1,000
	Overflow engine.OverflowPolicy // the zero value is Evict
	Stored   bool                  // the records are in the store of the Config
	Spread   bool                  // the bucket of Everyone is spread over all processors
	// IPv6Prefix is how many bits of an IPv6 address identify a client if Key is Client; 0 means the default.
	IPv6Prefix int
}

func (l Limit) algorithm() engine.Algorithm {
	if l.Algorithm == engine.NoAlgorithm {
		return engine.AlgorithmTokenBucket
	}
	return l.Algorithm
}

// Room returns for how many keys the limit has room.
func (l Limit) Room() int {
	if l.MaxKeys == 0 {
		return 1000
	}
	return l.MaxKeys
}

// IPv6 returns how many bits of an IPv6 address identify a client.
func (l Limit) IPv6() int { return cmp.Or(l.IPv6Prefix, 64) }

// Own returns the policy of requests that have neither a tier nor a quota.
func (l Limit) Own() engine.Policy {
	if l.Concurrency != 0 {
		return engine.Concurrency(l.Concurrency, 365*24*time.Hour)
	}
	return l.Policy(l.algorithm())
}

// ByQuota reports whether a request may have other numbers than those of the limit and its tiers.
func (l Limit) ByQuota() bool { return l.Quota || l.Users != nil }

// Tier returns the number of a tier. The limit's own numbers have the number 0, and its tiers have the numbers from 1
// on.
func (l Limit) Tier(name string) int {
	for i, t := range l.Tiers {
		if t.Name == name {
			return i + 1
		}
	}
	return 0
}

// A Config is the configuration with which a front is started or reloaded.
type Config struct {
	Limits []Limit
	Store  *Store // has the records of limits with Stored
	OnLoss Loss
	Answer time.Duration // after this time without an answer, the store counts as lost; 0 means 500 ms
	Nodes  int           // how many nodes share the store
	Dir    string        // folder of the limits' files, which several processes share; "": all limits are in memory
}

// Timeout returns how long a front waits for the store.
func (c Config) Timeout() time.Duration { return cmp.Or(c.Answer, 500*time.Millisecond) }

// An Outcome is how a request ends.
type Outcome string

const (
	Good   Outcome = "good"
	Bad    Outcome = "bad"    // the server answers with an error
	Broken Outcome = "broken" // the server breaks off without an answer
)

// A Request is one request of a client.
type Request struct {
	Client string // an address; "" means 192.0.2.1
	Path   string // "/" without it
	User   string
	Tier   string
	Cost   uint64 // for limits with Cost; 0 means 1
	Free   bool   // the cost is 0
	Quota  *Numbers
	Actual uint64  // the actual cost
	Ends   Outcome // "" means Good

	// ID is set by the suite. A front passes it to Env.Serve when the request has passed its limits.
	ID string
}

// Takes returns the cost.
func (r Request) Takes() uint64 {
	switch {
	case r.Free:
		return 0
	case r.Cost == 0:
		return 1
	}
	return r.Cost
}

// An Answer is the answer that a client gets.
type Answer struct {
	Admitted bool
	// Failed says that the request was not admitted because no decision could be made.
	Failed bool
	// RetryAfter is 0 if the answer does not say when to try again.
	RetryAfter time.Duration
	// Refused has the names of the limits that refused the request, if the front reports them.
	Refused []string
	// Err is the reason why the client got no answer, such as that the client has disconnected.
	Err error
}

// WriteUsers writes the numbers of the users to a file, in the form in which fronts read them.
func (l Limit) WriteUsers(path string) error {
	var b strings.Builder
	for user, n := range l.Users {
		switch n.Constant {
		case Unlimited:
			fmt.Fprintf(&b, "%s,unlimited\n", user)
		case Blocked:
			fmt.Fprintf(&b, "%s,0\n", user)
		default:
			fmt.Fprintf(&b, "%s,%d/%dms,%d\n", user, n.N, n.Per.Milliseconds(), n.Burst)
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}
