package limits

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
)

// A Limit is one of the limits of a [Set]. It needs a Name, and one of Limiter, Spread and Source. With a Limiter or a
// Source it also needs a Key.
//
// The functions of a Limit are called from any goroutine, and must not change the request. Each is called at most once
// for a request, except Key: it may be called twice, and once more for each of the Formers.
type Limit[R any] struct {
	// Name is the name of the limit in answers and metrics, unique in its set: 1 to 1,024 printable ASCII characters.
	Name string

	// Limiter decides, in this process or in a shared file ([engine.Shared]). Limits may share a Limiter. With the
	// policy [engine.Concurrency], the limit counts requests in flight: tokens come back when the request ends.
	Limiter *engine.Limiter
	// Spread decides instead of Limiter, for all matching requests together, without a Key. It decides last, so that a
	// refused request takes nothing from it: at a high rate, a Spread cannot give back all tokens. A limit with a
	// Spread has only tier 0, and cannot have Refund, Hold, Quota or MaxWait.
	Spread *engine.Spread
	// Formers are the previous limiters of the limit, from package live. When a request comes, the debt of its key in
	// the previous limiters is charged to Limiter or Spread. A limit of requests in flight cannot have Formers.
	Formers *live.Formers
	// Source decides instead of Limiter, in a store that several processes share. Limiter is then only the fallback for
	// [Local]. For [engine.Concurrency], the Source must be a [Holder].
	Source Source
	// OnLoss says what happens to a request when the source fails.
	OnLoss FailurePolicy

	// Match reports whether the limit applies to a request; nil means all requests.
	Match func(R) bool
	// Key returns the key from which a request takes its tokens.
	Key KeyFunc[R]
	// Cost returns how many tokens a request takes, maybe 0; nil means 1. A cost above the limit is always refused.
	Cost func(R) uint64
	// Hold means that Cost returns an estimate, for costs that are known only later, such as tokens of a language
	// model. An estimate above the limit counts as the limit ([engine.Limiter.Hold]). The handler gets the hold from
	// [HoldFrom] and settles it; otherwise the request costs the estimate. Each decision allocates. A Source must be a
	// [Holder]. Hold cannot be used for requests in flight, or with MaxWait.
	Hold bool
	// Least returns how many tokens a request needs at least, for a limit with Hold. If the key has that many, the
	// request takes all available tokens, up to Cost ([engine.Limiter.HoldUpTo]). [Hold.Taken] returns how many it
	// took.
	Least func(R) uint64
	// Tier returns the tier of a request ([engine.Tiers]); nil means tier 0. A request of a missing tier is always
	// refused. A Source must be [Tiered], and must accept the quota [engine.Blocked].
	Tier func(R) int
	// Quota returns the policy of a limit that comes with the request. It is the limiter's policy with other numbers,
	// [engine.Unlimited] or [engine.Blocked]. Make the limiter from [engine.TokenBuckets], or with [engine.MaxQuota].
	// If Quota fails or its policy is not accepted, [Options].OnError gets the error, and QuotaElse applies. A limit
	// with Quota cannot have Tier.
	Quota func(R) (engine.Policy, error)
	// QuotaElse is the policy for a request whose Quota fails. Set it if other people or programs write the quotas.
	// Without a valid QuotaElse, the request is refused as unavailable.
	QuotaElse engine.Policy
	// Refund reports, at the end of an allowed request, whether its cost is given back. The argument outcome is the end
	// of the request in the front's terms, such as an HTTP status: see [Result.Finish]. A settled hold is not given
	// back.
	Refund func(r R, outcome int) bool

	// MaxWait is how long a request waits for its tokens instead of being refused. 0 means not at all, and
	// [engine.Never] means until the request's context is done. If the tokens would come only after the deadline of the
	// context, the request is refused at once.
	//
	// For a token bucket, waiting requests form a line, in the order in which their tokens come
	// ([engine.Limiter.Reserve]). For other algorithms, a request tries again when its tokens should be there.
	//
	// A request waits for one limit at a time, first for the limit with the longest wait. Meanwhile it keeps its places
	// in flight, but has no tokens of other limits. After the wait, all limits are checked again, so that no limit
	// admits too many requests at that time. The request may then be refused or wait again; the time already waited
	// counts.
	//
	// If a waiting request gives up or is refused by another limit, the requests behind it move up.
	// [Options].MaxWaiting bounds how many requests wait. MaxWait cannot be used with a Source. It cannot be used for
	// requests in flight, either, because it is not known when these end. A limit in shadow mode takes the tokens
	// without waiting.
	MaxWait time.Duration

	// Shadow is for trying out a limit. The limit takes tokens and reports, but never refuses.
	Shadow bool
	// Unit says what a token stands for if it is not a request, such as "content-bytes". It is sent to clients if the
	// protocol has a place for it: in HTTP, the parameter "qu" of RateLimit-Policy. It is printable ASCII, at most
	// 1,024 characters.
	Unit string
}

// A FailurePolicy says what happens to a request when its store fails.
type FailurePolicy uint8

const (
	// Open lets the request pass this limit.
	Open FailurePolicy = iota
	// Closed refuses the request as unavailable.
	Closed
	// Local lets the limit's Limiter decide instead.
	Local
)

// limit is a Limit that has been checked.
type limit[R any] struct {
	Limit[R]
	index         int
	needs         needs
	tiered        Tiered // the Source, if the limit has tiers
	blockedSource Source // decides requests of tiers that the Source does not have
}

func (l *limit[R]) setTiers() (err error) {
	if l.Source == nil || l.Tier == nil {
		return nil
	}
	ok := false
	if l.tiered, ok = l.Source.(Tiered); !ok {
		return fmt.Errorf("the Source, a %T, has no tiers, and Tier is set", l.Source)
	}
	if l.blockedSource, err = l.Source.Quota(engine.Blocked()); err == nil && l.blockedSource == nil {
		err = errors.New("it has no Source under it, and no error")
	}
	if err != nil {
		return fmt.Errorf("the Source does not accept the quota engine.Blocked, and Tier is set: %w", err)
	}
	return nil
}

func (l *limit[R]) sourceOf(tier int) Source {
	if s := l.tiered.Tier(tier); s != nil {
		return s
	}
	return l.blockedSource
}

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
		if first, found := names[l.Name]; found {
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
		return fmt.Errorf("a MaxWait of %v: want 0 or more", l.MaxWait)
	case l.Tier != nil && l.Quota != nil:
		return errors.New("both Tier and Quota set the limit of a request: leave one of them out")
	case l.QuotaElse != engine.Policy{} && l.Quota == nil:
		return errors.New("QuotaElse is set but Quota is not")
	case l.Least != nil && !l.Hold:
		return errors.New("the field Least is set but Hold is not: without Hold a limit takes the whole cost or nothing")
	case l.Hold && l.MaxWait != 0:
		return errors.New("Hold and MaxWait are both set: a request cannot wait for an estimate")
	}
	if l.Formers != nil && (l.Limiter == nil && l.Spread == nil || l.inFlight()) {
		return errors.New("it has Formers, and no Limiter that could be charged with what keys owe them: want a " +
			"Limiter that is not of requests in flight")
	}
	if err := l.checkSource(); err != nil {
		return err
	}
	if err := l.checkSpread(); err != nil {
		return err
	}
	return l.checkInFlight()
}

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
		return fmt.Errorf("OnLoss is %d but Source is nil", l.OnLoss)
	case l.Source == nil:
		return nil
	case l.Limiter != nil && isInFlight(l.Source) != (l.Limiter.Algorithm() == engine.AlgorithmConcurrency):
		return errors.New("one of its Limiter and Source counts requests in flight, and the other does not")
	case l.inFlight() && !canHold(l.Source):
		return fmt.Errorf("its Source, a %T, has no limits of requests in flight", l.Source)
	case l.MaxWait > 0:
		return errors.New("MaxWait is set, but requests cannot wait for tokens of a Source")
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

func (l *Limit[R]) checkInFlight() error {
	switch {
	case !l.inFlight():
		return nil
	case l.Refund != nil:
		return errors.New("the field Refund is set, but a limit of requests in flight gets everything back")
	case l.Hold:
		return errors.New("the field Hold is set, but a limit of requests in flight gets everything back")
	case l.MaxWait != 0:
		return errors.New("MaxWait is set, but requests cannot wait for requests in flight, whose end is not known")
	}
	return nil
}

// isText reports whether s can be sent as a String of RFC 9651 to every parser.
func isText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= 1024
}
