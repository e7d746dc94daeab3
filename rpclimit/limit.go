package rpclimit

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Scope says what a limit counts.
type Scope uint8

const (
	// Calls: every call, when it begins. A stream is one call.
	Calls Scope = iota
	// Messages: every request message, the only one of a unary call as well as each of a stream. A stream whose message
	// is refused ends.
	Messages
)

// A Limit is one of the limits of [Limits]. Only Name and Limiter must be set.
//
// Its functions are called at most once a call, or once a message of a stream, from any goroutine.
type Limit struct {
	// Name is what the limit is called in the details of errors and in metrics: 1 to 1,024 printable ASCII characters,
	// and no two limits of one Limits have the same.
	Name string
	// Limiter decides. Other limits, HTTP requests and the like may share it. One of [engine.Concurrency] is an error
	// of [New].
	Limiter *engine.Limiter
	// On says what is counted: Calls without it.
	On Scope

	// Match says which calls the limit is for; nil means all. See [MatchMethods].
	Match func(Call) bool
	// Key returns the key that a call is charged to; nil means [Peer].
	Key KeyFunc
	// Cost says how many tokens of the limiter a call or message takes; nil means 1. Nothing is taken for 0. What costs
	// more than the limit is always refused. See [MethodCosts]. A cost that is known only at the end of the call is
	// charged by the handler, to the limiter and the same key ([engine.Limiter.Charge]).
	Cost func(Call) uint64
	// Tier says which of the limiter's tiers a call is under ([engine.Tiers]); nil means 0. A call under a tier
	// that the limiter does not have is always refused.
	Tier func(Call) int
	// Quota says which limit a call is under, where it comes with the call: the limiter's policy with other numbers,
	// [engine.Unlimited] or [engine.Blocked]. Make the limiter of [engine.TokenBuckets], or with [engine.MaxQuota]. If
	// [engine.Limiter.Quota] does not take the policy, the call ends as Unavailable, since a limit that cannot be
	// applied must not let it pass, and [OnError] gets the error. Not beside Tier.
	Quota func(Call) engine.Policy
	// Refund says, when a call that was admitted has ended, whether its cost is given back. See [RefundCodes]. It is
	// not called, and nothing is given back, if the call's context is done by then: a client could otherwise get its
	// tokens back by going away. A deadline that a client sets may end the call before the server's context is done. So
	// give back only for codes that a client cannot bring about. Not for Messages.
	Refund func(c Call, code Code) bool

	// MaxWait is how long a call or message may wait for its tokens instead of being refused; with 0 it does not wait,
	// with [engine.Never] it waits as long as its context lasts. If its tokens would be there only after the context's
	// deadline it is refused at once.
	//
	// Tokens of a token bucket are taken ahead ([engine.Limiter.Reserve]), so calls go on in the order in which they
	// came; of other algorithms a call asks again when its tokens should be there. It goes on when the last of its
	// limits has them. One whose context is done meanwhile, or that another limit refuses, gives back what it can.
	// [MaxWaiting] bounds how many wait.
	MaxWait time.Duration

	// Shadow makes the limit one that counts and reports but never refuses: to try it out. It takes what it would if it
	// were in force, and does not wait.
	Shadow bool
}

// newLimits checks limits.
func newLimits(limits []Limit) ([]Limit, error) {
	if len(limits) == 0 {
		return nil, errors.New("rpclimit: New: no limits: want at least one")
	}
	checked := make([]Limit, len(limits))
	names := make(map[string]int, len(limits))
	for i, l := range limits {
		if err := l.check(); err != nil {
			return nil, fmt.Errorf("rpclimit: limit %d of %d, %q: %w", i+1, len(limits), l.Name, err)
		}
		if first, twice := names[l.Name]; twice {
			return nil, fmt.Errorf("rpclimit: limits %d and %d of %d have the same name, %q", first+1, i+1, len(limits), l.Name)
		}
		names[l.Name] = i
		if l.Key == nil {
			l.Key = Peer
		}
		checked[i] = l
	}
	return checked, nil
}

func (l *Limit) check() error {
	switch {
	case l.Name == "" || !isText(l.Name):
		return errors.New("the name goes into errors: want 1 to 1,024 printable ASCII characters")
	case l.Limiter == nil:
		return errors.New("it has no Limiter")
	case l.Limiter.Algorithm() == engine.AlgorithmConcurrency:
		return errors.New("what a call takes from an engine.Concurrency would not be given back: want a rate")
	case l.On > Messages:
		return fmt.Errorf("it is on %d: want Calls or Messages", l.On)
	case l.Tier != nil && l.Quota != nil:
		return errors.New("both Tier and Quota say what limit a call is under")
	case l.Refund != nil && l.On == Messages:
		return errors.New("a message ends with no status, but Refund is set")
	case l.MaxWait < 0:
		return fmt.Errorf("a MaxWait of %v: want how long a call may wait, or 0", l.MaxWait)
	}
	return nil
}

func isText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= 1024
}
