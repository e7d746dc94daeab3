package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Limit is one of the limits of a [Middleware]. Only Name and either Limiter or Backend must be set.
//
// Its functions are called at most once a request, from any goroutine. They must not change the
// request or read its body.
type Limit struct {
	// Name is what the limit is called in headers, bodies and metrics: 1 to 1,024 printable ASCII
	// characters, and no two limits of a middleware have the same.
	Name string

	// Limiter decides, in this process. Under [engine.Concurrency] the limit is one of requests in flight: what a
	// request takes comes back when it is over.
	Limiter *engine.Limiter
	// Backend decides instead, for all processes together. Then Limiter is only what [FailLocal]
	// falls back to.
	Backend Backend
	// OnError says what happens to a request when the backend fails.
	OnError ErrorPolicy
	// Window is what the headers say of a backend's limit: the time in which it comes back as a
	// whole. 0 leaves it out. A Limiter's is known.
	Window time.Duration

	// Match says which requests the limit is for; nil means all.
	Match func(*http.Request) bool
	// Key returns the key that a request is charged to; nil means [RemoteIP].
	Key KeyFunc
	// Cost says how many tokens a request takes; nil means 1. Nothing is taken for 0. A request
	// that costs more than the limit is refused for ever.
	Cost func(*http.Request) uint64
	// Tier says which of the limiter's tiers a request is under ([engine.Tiers]); nil means 0.
	// A tier that the limiter does not have is refused for ever. Not for a Backend.
	Tier func(*http.Request) int
	// Quota says which limit a request is under, where it comes with the request: the limiter's policy with other
	// numbers, [engine.Unlimited] or [engine.Blocked]. Make the limiter of [engine.TokenBuckets], or with
	// [engine.MaxQuota]. A policy that [engine.Limiter.Quota] does not take is reported to [OnBackendError], and the
	// request is answered 503: a limit that cannot be applied is no reason to let it pass. Not beside Tier, and for a
	// Backend only with BackendQuota.
	Quota func(*http.Request) engine.Policy
	// BackendQuota returns the Backend under a policy of Quota, or an error if it does not take that: with a limiter of
	// package redislimit it calls its method Quota. A Limiter of [FailLocal] has to take the policy, too.
	BackendQuota func(engine.Policy) (Backend, error)
	// Refund says, when a request that was allowed is over, whether its cost is given back. status
	// is that of the response: 101 for a hijacked connection, 500 for a handler that panicked before it wrote a status.
	// See [RefundStatus].
	//
	// [Middleware.Handler] does not call it, and gives nothing back, where the handler panicked after it wrote a status
	// or after the client had gone, and for a gRPC call whose status is not OK. The status may be that of a proxy's own
	// answer: a proxy that answers 502 when its client has gone must tell the two apart, by the request's context.
	Refund func(r *http.Request, status int) bool

	// MaxWait is how long a request may wait for its tokens where it would be refused; 0 is not at all. Requests wait
	// in the order in which their tokens come ([engine.Limiter.Reserve]), and go on when the last of their limits has
	// them. One whose context is done meanwhile, or for which another limit says no, is refused, and those behind it
	// that wait for as many tokens move up. [MaxWaiting] bounds how many wait. Only for token buckets, and not for
	// a Backend. A limit in shadow mode takes the tokens and does not wait.
	MaxWait time.Duration

	// Shadow makes the limit one that counts and reports but never refuses, and which headers do
	// not mention: to try it out. It takes what it would if it were in force.
	Shadow bool
	// Unit is the "qu" parameter of RateLimit-Policy, such as "content-bytes", where a token is
	// not a request: printable ASCII, at most 1,024 characters.
	Unit string
}

// A Backend is a limiter whose state is elsewhere, such as in Redis. Keys come as text
// ([KeyFunc.Text]), because a backend needs exact keys that mean the same everywhere; making
// the text allocates, which is little beside the way to the backend.
//
// Both methods are called from many goroutines and must come back soon after the context is done;
// the backend sets its own timeout, too.
type Backend interface {
	// Take takes n tokens from the key, all or none.
	Take(ctx context.Context, key string, n uint64) (engine.Decision, error)
	// Refund gives n tokens back that were taken. Its context is not done when the request's is.
	Refund(ctx context.Context, key string, n uint64) error
}

// An ErrorPolicy says what happens to a request when its limit's backend fails.
type ErrorPolicy uint8

const (
	// FailOpen lets the request pass this limit.
	FailOpen ErrorPolicy = iota
	// FailClosed answers 503.
	FailClosed
	// FailLocal asks the limit's Limiter instead.
	FailLocal
)

// limit is a Limit that was checked, with texts that are formatted once.
type limit struct {
	Limit
	quoted   string                       // the name as a string of RFC 9651, which is one of JSON as well
	unit     string                       // ";qu=..." or ""
	policies [16]atomic.Pointer[rendered] // one for each tier
	inFlight bool
	lines    lines // of requests that wait
}

// rendered is an item of RateLimit-Policy, and the numbers in it.
type rendered struct {
	quota  uint64
	window time.Duration
	text   string
}

// newLimits checks limits.
func newLimits(limits []Limit) ([]*limit, error) {
	if len(limits) == 0 {
		return nil, errors.New("httplimit: New: no limits: want at least one")
	}
	checked := make([]*limit, len(limits))
	names := make(map[string]int, len(limits))
	for i, l := range limits {
		if err := l.check(); err != nil {
			return nil, fmt.Errorf("httplimit: limit %d of %d, %q: %w", i+1, len(limits), l.Name, err)
		}
		if first, twice := names[l.Name]; twice {
			return nil, fmt.Errorf("httplimit: limits %d and %d of %d have the same name, %q", first+1, i+1,
				len(limits), l.Name)
		}
		names[l.Name] = i
		if l.Key == nil {
			l.Key = RemoteIP
		}
		checked[i] = &limit{Limit: l, quoted: quote(l.Name), inFlight: l.inFlight()}
		if l.Unit != "" {
			checked[i].unit = ";qu=" + quote(l.Unit)
		}
	}
	return checked, nil
}

// inFlight reports whether it is a limit of requests in flight.
func (l *Limit) inFlight() bool {
	return l.Limiter != nil && l.Limiter.Algorithm() == engine.AlgorithmConcurrency
}

func (l *Limit) check() error {
	switch {
	case l.Name == "" || !isText(l.Name):
		return errors.New("the name goes into headers: want 1 to 1,024 printable ASCII characters")
	case !isText(l.Unit):
		return fmt.Errorf("unit %q goes into headers: want at most 1,024 printable ASCII characters", l.Unit)
	case l.Limiter == nil && l.Backend == nil:
		return errors.New("it has neither a Limiter nor a Backend")
	case l.OnError > FailLocal:
		return fmt.Errorf("an OnError of %d: want FailOpen, FailClosed or FailLocal", l.OnError)
	case l.Backend == nil && l.OnError != FailOpen:
		return fmt.Errorf("there is no Backend that could fail, but OnError is %d", l.OnError)
	case l.Backend == nil && l.Window != 0:
		return fmt.Errorf("the Limiter knows its window, but Window is %v", l.Window)
	case l.Backend != nil && l.inFlight():
		return errors.New("there is no limit of requests in flight beside a Backend, but the Limiter is one")
	case l.Refund != nil && l.inFlight():
		return errors.New("a limit of requests in flight gets back all that it gives, but Refund is set")
	case l.MaxWait < 0:
		return fmt.Errorf("a MaxWait of %v: want how long a request may wait, or 0", l.MaxWait)
	case l.MaxWait > 0 && l.Backend != nil:
		return errors.New("tokens of a Backend cannot be waited for, but MaxWait is set")
	case l.MaxWait > 0 && l.Limiter.Policy(0).Algorithm() != engine.AlgorithmTokenBucket:
		return errors.New("only tokens of a token bucket can be waited for, but MaxWait is set")
	case l.Window < 0:
		return fmt.Errorf("a Window of %v: want the time in which the backend's limit comes back, or 0", l.Window)
	case l.Backend != nil && l.Tier != nil:
		return errors.New("a Backend has no tiers, but Tier is set")
	case l.Backend != nil && l.Quota != nil && l.BackendQuota == nil:
		return errors.New("a Backend has quotas by BackendQuota, but only Quota is set")
	case l.BackendQuota != nil && (l.Backend == nil || l.Quota == nil):
		return errors.New("BackendQuota is for a Backend and a Quota, but not both are set")
	case l.Tier != nil && l.Quota != nil:
		return errors.New("both Tier and Quota say what limit a request is under")
	case l.Backend != nil && l.OnError == FailLocal && l.Limiter == nil:
		return errors.New("there is no Limiter to fall back to, but OnError is FailLocal")
	case l.Backend != nil && l.OnError != FailLocal && l.Limiter != nil:
		return errors.New("it has a Limiter and a Backend, and only FailLocal uses both")
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

// quote writes printable ASCII as a string of RFC 9651. In JSON it reads the same.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
