package httplimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/limits/spec"
)

// A Middleware checks requests against limits. Make one with [New]. All its methods are safe for concurrent use.
type Middleware struct {
	set     *limits.Set[*http.Request]
	texts   []*headerTexts // of each limit
	options limits.Options[*http.Request]
	styles  HeaderStyle
	body    BodyFormat
	respond func(http.ResponseWriter, *http.Request, Result)
	now     func() time.Time
	secret  []byte // the secret for partition keys; nil: no partition keys
}

// An Option for [New] changes one thing about a middleware.
type Option func(*Middleware) error

// New returns a middleware with the limits. The limits that match a request are checked in the order of the list. If
// one limit refuses, nothing is taken from the other limits. An error names the bad limit or option.
func New(list []Limit, options ...Option) (*Middleware, error) {
	m := &Middleware{styles: IETF, now: time.Now}
	for i, option := range options {
		if option == nil {
			return nil, fmt.Errorf("httplimit: New: option %d of %d is nil", i+1, len(options))
		}
		if err := option(m); err != nil {
			return nil, err
		}
	}
	list = slices.Clone(list)
	for i := range list {
		if list[i].Key == nil && list[i].Spread == nil {
			list[i].Key = RemoteIP
		}
		m.texts = append(m.texts, newTexts(&list[i]))
	}
	m.options.Text = m.secret != nil
	var err error
	if m.set, err = limits.New(list, m.options); err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	return m, nil
}

// Headers sets which headers answers carry, such as IETF | Legacy. The default is [IETF]. Every refusal has
// Retry-After, even with [NoHeaders]. The exception is a refusal only by limits of requests in flight.
func Headers(styles HeaderStyle) Option {
	return func(m *Middleware) error {
		if styles > allStyles {
			return fmt.Errorf("httplimit: Headers(%d): want IETF, Legacy, Draft06, some of them, or NoHeaders", styles)
		}
		m.styles = styles
		return nil
	}
}

// Body sets the body of refusals. The default is [ProblemJSON].
func Body(format BodyFormat) Option {
	return func(m *Middleware) error {
		if format > PlainJSON {
			return fmt.Errorf("httplimit: Body(%d): want ProblemJSON or PlainJSON", format)
		}
		m.body = format
		return nil
	}
}

// RefuseWith sets the function that writes the status and body of refusals. The headers are already set when it is
// called. [Result.Status] is 429. It is 503 if the store of a limit with [limits.Closed] failed, or if a limit could
// not be applied.
func RefuseWith(respond func(http.ResponseWriter, *http.Request, Result)) Option {
	return func(m *Middleware) error {
		if respond == nil {
			return errors.New("httplimit: RefuseWith(nil): want a function that writes a response")
		}
		m.respond = respond
		return nil
	}
}

// Skip sets a function that reports whether a request is exempt from all limits. The answer to an exempt request has no
// headers of limits.
func Skip(skip func(*http.Request) bool) Option {
	return func(m *Middleware) error {
		if skip == nil {
			return errors.New("httplimit: Skip(nil): want a function that chooses requests")
		}
		m.options.Skip = skip
		return nil
	}
}

// Modes sets how each limit is applied to a request. The argument limit is the limit's index in the list of [New]. See
// [limits.Options].
func Modes(modes func(*http.Request) func(limit int) limits.Mode) Option {
	return func(m *Middleware) error {
		if modes == nil {
			return errors.New("httplimit: Modes(nil): want a function that returns a function for the modes of limits, or nil")
		}
		m.options.Modes = modes
		return nil
	}
}

// OnLimited sets a callback for refusals. It is called for every limit that refuses a request, or that would refuse it
// outside of shadow mode. It runs in the goroutine of the request, before the answer is written.
func OnLimited(callback func(*http.Request, Check)) Option {
	return func(m *Middleware) error {
		if callback == nil {
			return errors.New("httplimit: OnLimited(nil): want a function")
		}
		m.options.OnLimited = callback
		return nil
	}
}

// OnError sets a callback for errors. It is called for every error of a [limits.Source] and of a limit's Quota.
func OnError(callback func(limit string, err error)) Option {
	return func(m *Middleware) error {
		if callback == nil {
			return errors.New("httplimit: OnError(nil): want a function")
		}
		m.options.OnError = callback
		return nil
	}
}

// ObserveWith sets the metrics that count outcomes.
func ObserveWith(metrics limits.Metrics) Option {
	return func(m *Middleware) error {
		if metrics == nil {
			return errors.New("httplimit: ObserveWith(nil): want limits.Metrics")
		}
		m.options.Metrics = metrics
		return nil
	}
}

// RetryJitter adds a random time to every Retry-After. So clients that were refused together do not return together.
// The argument maxJitter is the longest added time, from 1s to 1h. The function random returns numbers in [0, 1) and
// must be safe for concurrent use. If it is nil, math/rand/v2 is used.
func RetryJitter(maxJitter time.Duration, random func() float64) Option {
	return func(m *Middleware) error {
		if maxJitter < time.Second || maxJitter > spec.MaxJitter || maxJitter%time.Second != 0 {
			return fmt.Errorf("httplimit: RetryJitter(%v): want whole seconds, 1s to %v", maxJitter, spec.MaxJitter)
		}
		m.options.Jitter, m.options.Random = maxJitter, random
		return nil
	}
}

// PartitionKeys adds the parameter "pk" to the [IETF] headers. It has eight bytes of an HMAC-SHA256 of the key. Without
// the secret, no one can find the key from it. Processes with the same secret send the same pk for a key. A secret has
// at least 16 bytes; nil means a random one. The parameter makes answers allocate.
func PartitionKeys(secret []byte) Option {
	return func(m *Middleware) error {
		if secret == nil {
			secret = make([]byte, 32)
			rand.Read(secret) // never fails
		}
		if len(secret) < 16 {
			return fmt.Errorf("httplimit: PartitionKeys: a secret of %d bytes: want at least 16, or nil", len(secret))
		}
		m.secret = slices.Clone(secret)
		return nil
	}
}

// Clock sets the clock of X-RateLimit-Reset. The default is time.Now. Nothing else needs the time of day. The function
// must be safe for concurrent use.
func Clock(now func() time.Time) Option {
	return func(m *Middleware) error {
		if now == nil {
			return errors.New("httplimit: Clock(nil): want a function that returns the time")
		}
		m.now = now
		return nil
	}
}

// MaxWaiting sets how many requests may wait for tokens at once, for all limits with a MaxWait together. The number n
// is 1 or more, and the default is 1,000. Any further request that would have to wait is refused at once, so that a
// flood does not occupy many connections.
func MaxWaiting(n int) Option {
	return func(m *Middleware) error {
		if n < 1 {
			return fmt.Errorf("httplimit: MaxWaiting(%d): want 1 or more", n)
		}
		m.options.MaxWaiting = n
		return nil
	}
}

// Pause is for tests and simulated time: it replaces the timer with which a request waits for a limit with a MaxWait.
// The function pause returns nil when the duration has passed. If the context is done before, pause returns the
// context's error. It must be safe for concurrent use.
func Pause(pause func(context.Context, time.Duration) error) Option {
	return func(m *Middleware) error {
		if pause == nil {
			return errors.New("httplimit: Pause(nil): want a function that waits")
		}
		m.options.Pause = pause
		return nil
	}
}

// Decide checks a request against the limits, without answering it. It waits for tokens if a limit has a MaxWait. For
// when a decision allocates, see [limits.Set.Decide].
//
// If the request is refused, call [Result.Refuse]. If it is allowed, write the headers with [Result.WriteHeaders]. At
// the end of an allowed request, call [Result.Finish] if a limit has a Refund function. If none has, but there is a
// limit of requests in flight, call [limits.Result.Release].
func (m *Middleware) Decide(r *http.Request) (res Result) {
	res.m = m
	m.set.DecideInto(&res.Result, r.Context(), m.readOnce(r))
	return res
}

// readOnce returns a request that caches what the limits read. It does this only if there are several limits and
// reading is costly.
func (m *Middleware) readOnce(r *http.Request) *http.Request {
	if m.set.Len() < 2 {
		return r
	}
	return withParsed(r)
}

// withParsed is the second part of readOnce. It is a separate function so that the compiler can inline readOnce.
func withParsed(r *http.Request) *http.Request {
	if r.Context().Value(reading.ParsedKey{}) != nil || !reading.IsCostly(r) {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), reading.ParsedKey{}, new(reading.Parsed)))
}

// Waiting returns how many requests wait for tokens now, for all limits with a MaxWait together.
func (m *Middleware) Waiting() int64 { return m.set.Waiting() }

// Failures returns a count of failures: a limit could not be applied, or its store failed.
func (m *Middleware) Failures() uint64 { return m.set.Failures() }

// Handler returns a handler that passes allowed requests to next and refuses the others. For a router, use the method
// value (m.Handler) as a middleware. A request is in flight until next returns or panics, even if next hijacked the
// connection. If a limit has Hold, next gets the hold from [limits.HoldFrom] with the context of its request.
//
// If no limit that applies has a Refund function, next gets the ResponseWriter unchanged. Otherwise next gets a wrapper
// that records the status. The wrapper can flush, hijack and push if the original can. [http.ResponseController] finds
// the original.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res := Result{m: m}
		ctx := r.Context()
		m.set.DecideInto(&res.Result, ctx, m.readOnce(r))
		if !res.Allowed() {
			res.Refuse(w, r)
			return
		}
		res.Serve(w, r, func(w http.ResponseWriter, r *http.Request) int {
			next.ServeHTTP(w, r)
			return 0
		})
	})
}
