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
	// Limiter decides. Other limits, HTTP requests and the like may share it. Under [engine.Concurrency] the limit is
	// one of calls in flight: what a call takes comes back when it ends, however it ends.
	Limiter *engine.Limiter
	// On says what is counted: Calls without it. A limit of calls in flight is on Calls.
	On Scope

	// Match says which calls the limit is for; nil means all. See [MatchMethods].
	Match func(Call) bool
	// Key returns the key that a call is charged to; nil means [Peer].
	Key KeyFunc
	// Cost says how many tokens of the limiter a call or message takes; nil means 1. Nothing is taken for 0. What costs
	// more than the limit is always refused. See [MethodCosts].
	Cost func(Call) uint64
	// Hold says that the Cost of a call is an estimate, of which the limit at most is taken ([engine.Limiter.Hold]).
	// The handler finds the hold by [HoldFrom] and settles it when the cost is known: tokens of a language model, bytes
	// of an answer. One that is not settled costs the estimate. It takes some allocations. Only for Calls, and not for
	// calls in flight.
	Hold bool
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
	// give back only for codes that a client cannot bring about. Of a limit with Hold a cost that the handler has
	// settled stays, and the call is not observed as refunded. Not for Messages.
	Refund func(c Call, code Code) bool

	// MaxWait is how long a call or message may wait for its tokens instead of being refused; with 0 it does not wait,
	// with [engine.Never] it waits as long as its context lasts. If its tokens would be there only after the context's
	// deadline it is refused at once.
	//
	// Tokens of a token bucket are taken ahead ([engine.Limiter.Reserve]), so calls go on in the order in which they
	// came; of other algorithms a call asks again when its tokens should be there. It goes on when the last of its
	// limits has them. One whose context is done meanwhile, or that another limit refuses, gives back what it can.
	// [MaxWaiting] bounds how many wait. Not with Hold, and not for calls in flight, whose end is not known.
	MaxWait time.Duration

	// Shadow makes the limit one that counts and reports but never refuses: to try it out. It takes what it would if it
	// were in force, and does not wait.
	Shadow bool

	inFlight bool // it is one of calls in flight
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
		l.inFlight = l.isInFlight()
		checked[i] = l
	}
	return checked, nil
}

// isInFlight reports whether it is a limit of calls in flight.
func (l *Limit) isInFlight() bool { return l.Limiter.Algorithm() == engine.AlgorithmConcurrency }

func (l *Limit) check() error {
	switch {
	case l.Name == "" || !isText(l.Name):
		return errors.New("the name goes into errors: want 1 to 1,024 printable ASCII characters")
	case l.Limiter == nil:
		return errors.New("it has no Limiter")
	case l.On > Messages:
		return fmt.Errorf("it is on %d: want Calls or Messages", l.On)
	case l.isInFlight() && l.On == Messages:
		return errors.New("nothing tells when a message is over, but it is on Messages and a limit of what is in flight")
	case l.isInFlight() && l.Refund != nil:
		return errors.New("a limit of calls in flight gets back all that it gives, but Refund is set")
	case l.isInFlight() && l.Hold:
		return errors.New("a limit of calls in flight gets back all that it gives, but Hold is set")
	case l.isInFlight() && l.MaxWait != 0:
		return errors.New("when a call in flight ends is not known, so it cannot be waited for, but MaxWait is set")
	case l.Hold && l.On == Messages:
		return errors.New("a message has no handler that settles, but Hold is set")
	case l.Hold && l.MaxWait != 0:
		return errors.New("an estimate is not waited for, but Hold and MaxWait are set")
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
