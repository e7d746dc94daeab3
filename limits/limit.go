package limits

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
)

// A Limit is one of the limits of a [Set]. Name and one of Limiter, Spread and Source must be set, and Key without a
// Spread.
//
// Its functions are called at most once a request, from any goroutine. Key may be called twice, and once more for each
// of Formers. They must not change the request.
type Limit[R any] struct {
	// Name is what the limit is called in answers and metrics: 1 to 1,024 printable ASCII characters. No two limits of
	// a set have the same name.
	Name string

	// Limiter decides, in this process or in a shared file ([engine.Shared]). Other limits may share it. Under
	// [engine.Concurrency] the limit is one of requests in flight: what a request takes comes back when it is over.
	Limiter *engine.Limiter
	// Spread decides instead, for all requests that match together: Key is not set. It is the last that is asked, so
	// that what another limit refuses takes nothing from it: at a high rate a Spread gives back less than it took. So
	// it is not for Refund or Hold, and not for Quota or MaxWait. It has tier 0 only.
	Spread *engine.Spread
	// Formers are the previous limiters of the limit: what a key still owes them is charged to Limiter or Spread when a
	// request of the key comes. Package live keeps them over changes of a configuration. Key is then called for each of
	// them, too. Not for requests in flight.
	Formers *live.Formers
	// Source decides instead, for several processes together, in a store; under [engine.Concurrency] it has to be a
	// [Holder]. Then Limiter is only what [Local] falls back to.
	Source Source
	// OnLoss says what happens to a request when the source fails.
	OnLoss FailurePolicy

	// Match reports which requests the limit is for; nil means all.
	Match func(R) bool
	// Key returns the key that a request is charged to.
	Key KeyFunc[R]
	// Cost returns how many tokens a request takes; nil means 1. Nothing is taken for 0. A request that costs more than
	// the limit is always refused.
	Cost func(R) uint64
	// Hold says that Cost is an estimate, of which the limit at most is taken ([engine.Limiter.Hold]). What handles the
	// request finds the hold by [HoldFrom] and settles it when the cost is known: tokens of a language model, bytes of
	// an answer. A hold that is not settled costs the estimate. It takes some allocations. A Source must be a [Holder].
	// Not for requests in flight, or with MaxWait.
	Hold bool
	// Least makes a limit with Hold take what there is, Cost at most, for a request that can do with less: an answer
	// that is cut to what is left. The request passes if the key has as many tokens as Least returns
	// ([engine.Limiter.HoldUpTo]), and [Hold.Taken] says how many it got.
	Least func(R) uint64
	// Tier returns which of the limiter's tiers a request is under ([engine.Tiers]); nil means 0. A tier that the
	// limiter does not have is always refused. A Source must be [Tiered], and accept the quota [engine.Blocked].
	Tier func(R) int
	// Quota returns the limit that a request is under, where it comes with the request: the limiter's policy with other
	// numbers, [engine.Unlimited] or [engine.Blocked]. Make the limiter of [engine.TokenBuckets], or with
	// [engine.MaxQuota]. A policy that the limiter or source does not accept goes to [Options].OnError, and the request
	// is refused as unavailable. Not with Tier.
	Quota func(R) engine.Policy
	// Refund reports, when a request that was allowed is over, whether its cost is given back. outcome is what the
	// front calls the end of a request: an HTTP status, a status code of gRPC. See [Result.Finish]. Of a limit with
	// Hold a cost that was settled stays.
	Refund func(r R, outcome int) bool

	// MaxWait is how long a request may wait for its tokens where it would be refused. 0 is not at all; with
	// [engine.Never] it waits as long as its context lasts. If its tokens come after the context's deadline, it is
	// refused at once.
	//
	// Requests of a token bucket wait in the order in which their tokens come ([engine.Limiter.Reserve]). Requests of
	// other algorithms ask again when their tokens should be there. A request waits for one limit at a time, first for
	// that with the longest wait, and has nothing of the others meanwhile but its places in flight. When its turn has
	// come, it asks the others again, also those in stores: it goes on if all admit it then, and otherwise is refused
	// or waits for another, with the time that it has waited counted. So each limit holds at the times at which
	// requests go on. A request whose context is done, or that another limit refuses, gives back what it can, and those
	// behind it move up. [Options].MaxWaiting bounds how many wait. Not for a Source, and not for requests in flight,
	// whose end is not known. A limit in shadow mode takes the tokens and does not wait.
	MaxWait time.Duration

	// Shadow makes the limit one that counts and reports but never refuses: to try it out. It takes what it would take
	// otherwise.
	Shadow bool
	// Unit is what a token stands for where it is not a request, such as "content-bytes". Fronts write it where their
	// protocol has a place for it (the "qu" parameter of RateLimit-Policy): printable ASCII, at most 1,024 characters.
	Unit string
}

// A FailurePolicy says what happens to a request when the store of its limit fails.
type FailurePolicy uint8

const (
	// Open lets the request pass this limit.
	Open FailurePolicy = iota
	// Closed refuses the request as unavailable.
	Closed
	// Local asks the limit's Limiter instead.
	Local
)

// limit is a Limit that was checked.
type limit[R any] struct {
	Limit[R]
	index  int
	needs  needs
	tiered Tiered // the Source, if the limit has tiers
	denied Source // of tiers that it does not have
}

// setTiers finds what decides about tiers in a store.
func (l *limit[R]) setTiers() (err error) {
	if l.Source == nil || l.Tier == nil {
		return nil
	}
	ok := false
	if l.tiered, ok = l.Source.(Tiered); !ok {
		return fmt.Errorf("the Source, a %T, has no tiers, and Tier is set", l.Source)
	}
	if l.denied, err = l.Source.Quota(engine.Blocked()); err == nil && l.denied == nil {
		err = errors.New("it has no Source under it, and no error")
	}
	if err != nil {
		return fmt.Errorf("the Source does not accept the quota engine.Blocked, and Tier is set: %w", err)
	}
	return nil
}

// sourceOf returns what decides about a tier in a store.
func (l *limit[R]) sourceOf(tier int) Source {
	if s := l.tiered.Tier(tier); s != nil {
		return s
	}
	return l.denied
}

// newLimits checks limits.
func newLimits[R any](list []Limit[R]) ([]*limit[R], error) {
	if len(list) == 0 {
		return nil, errors.New("no limits: want at least one")
	}
	checked := make([]*limit[R], len(list))
	names := make(map[string]int, len(list))
	for i, l := range list {
		if err := l.check(); err != nil {
			return nil, fmt.Errorf("limit %d of %d, %q: %w", i+1, len(list), l.Name, err)
		}
		if first, twice := names[l.Name]; twice {
			return nil, fmt.Errorf("limits %d and %d of %d have the same name, %q", first+1, i+1, len(list), l.Name)
		}
		names[l.Name] = i
		if l.Spread != nil {
			l.Key = Everyone[R]
		}
		checked[i] = &limit[R]{Limit: l, index: i, needs: l.needs()}
		if err := checked[i].setTiers(); err != nil {
			return nil, fmt.Errorf("limit %d of %d, %q: %w", i+1, len(list), l.Name, err)
		}
	}
	return checked, nil
}

// inFlight reports whether it is a limit of requests in flight.
func (l *Limit[R]) inFlight() bool {
	return l.Limiter != nil && l.Limiter.Algorithm() == engine.AlgorithmConcurrency || l.Source != nil && isInFlight(l.Source)
}

// check returns what is wrong with the limit.
func (l *Limit[R]) check() error {
	switch {
	case l.Name == "" || !isText(l.Name):
		return errors.New("the name goes into answers: want 1 to 1,024 printable ASCII characters")
	case !isText(l.Unit):
		return fmt.Errorf("unit %q goes into answers: want at most 1,024 printable ASCII characters", l.Unit)
	case l.Key == nil && l.Spread == nil:
		return errors.New("it has no Key")
	case l.MaxWait < 0:
		return fmt.Errorf("a MaxWait of %v: want how long a request may wait, or 0", l.MaxWait)
	case l.Tier != nil && l.Quota != nil:
		return errors.New("both Tier and Quota say what limit a request is under")
	case l.Least != nil && !l.Hold:
		return errors.New("a limit without a Hold takes all of a cost or nothing, but Least is set")
	case l.Hold && l.MaxWait != 0:
		return errors.New("an estimate is not waited for, but Hold and MaxWait are set")
	}
	if l.Formers != nil && (l.Limiter == nil && l.Spread == nil || l.inFlight()) {
		return errors.New("what keys owe its Formers is charged to its Limiter, and it has none, or one of requests in flight")
	}
	if err := l.checkSource(); err != nil {
		return err
	}
	if err := l.checkSpread(); err != nil {
		return err
	}
	return l.checkInFlight()
}

// checkSource returns what is wrong with where the limit decides.
func (l *Limit[R]) checkSource() error {
	if l.Source != nil {
		switch store := l.Source.Store(); {
		case store == nil:
			return errors.New("the Store of its Source is nil")
		case !reflect.ValueOf(store).Comparable():
			return fmt.Errorf("the Store of its Source is a %T, which cannot be compared: want a pointer", store)
		}
	}
	switch {
	case l.Limiter == nil && l.Source == nil && l.Spread == nil:
		return errors.New("it has neither a Limiter nor a Source, and no Spread")
	case l.OnLoss > Local:
		return fmt.Errorf("an OnLoss of %d: want Open, Closed or Local", l.OnLoss)
	case l.Source == nil && l.OnLoss != Open:
		return fmt.Errorf("OnLoss is %d but there is no Source that could fail", l.OnLoss)
	case l.Source == nil:
		return nil
	case l.Limiter != nil && isInFlight(l.Source) != (l.Limiter.Algorithm() == engine.AlgorithmConcurrency):
		return errors.New("either its Limiter or its Source is one of requests in flight, and the other is not")
	case l.inFlight() && !canHold(l.Source):
		return fmt.Errorf("its Source, a %T, has no limits of requests in flight", l.Source)
	case l.MaxWait > 0:
		return errors.New("tokens of a Source cannot be waited for, but MaxWait is set")
	case l.Hold && !canHold(l.Source):
		return fmt.Errorf("its Source, a %T, has no holds, but Hold is set", l.Source)
	case l.OnLoss == Local && l.Limiter == nil:
		return errors.New("OnLoss is Local but there is no Limiter to fall back to")
	case l.OnLoss != Local && l.Limiter != nil:
		return errors.New("it has a Limiter and a Source, and only Local uses both")
	}
	return nil
}

func isInFlight(s Source) bool { return s.Policy().Algorithm() == engine.AlgorithmConcurrency }

func canHold(s Source) bool {
	h, ok := s.(Holder)
	return ok && h.Holds()
}

// checkInFlight returns what is wrong with a limit of requests in flight.
func (l *Limit[R]) checkInFlight() error {
	switch {
	case !l.inFlight():
		return nil
	case l.Refund != nil:
		return errors.New("a limit of requests in flight gets back all that it gives, but Refund is set")
	case l.Hold:
		return errors.New("a limit of requests in flight gets back all that it gives, but Hold is set")
	case l.MaxWait != 0:
		return errors.New("when a request in flight ends is not known, so it cannot be waited for, but MaxWait is set")
	}
	return nil
}

// isText reports whether s can be a string of RFC 9651 that every parser must accept.
func isText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= 1024
}
