package httplimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/pause"
)

// A Middleware checks requests against limits. Make one with [New]. All its methods are safe for concurrent use.
type Middleware struct {
	limits         []*limit
	styles         HeaderStyle
	body           BodyFormat
	respond        func(http.ResponseWriter, *http.Request, Result)
	skip           func(*http.Request) bool
	onLimited      func(*http.Request, Check)
	onBackendError func(limit string, err error)
	metrics        Metrics
	now            func() time.Time
	jitter         int64 // seconds
	random         func() float64
	secret         []byte // of partition keys; nil for none
	failures       atomic.Uint64
	maxWaiting     int64
	waiting        atomic.Int64 // requests that wait for tokens
	pause          func(context.Context, time.Duration) error
}

// An Option changes one thing about a middleware at [New].
type Option func(*Middleware) error

// New returns a middleware of the limits. A request is checked against those that match it, in this order, all or
// nothing: if one refuses, the others keep their tokens.
//
// The error of a bad limit or option names it and the reason.
func New(limits []Limit, options ...Option) (*Middleware, error) {
	checked, err := newLimits(limits)
	if err != nil {
		return nil, err
	}
	m := &Middleware{limits: checked, styles: IETF, now: time.Now, maxWaiting: defaultWaiting, pause: pause.For}
	for i, option := range options {
		if option == nil {
			return nil, fmt.Errorf("httplimit: New: option %d of %d is nil", i+1, len(options))
		}
		if err := option(m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Headers sets which headers answers carry, such as IETF | Legacy; [IETF] without it. Retry-After goes
// with every refusal, also with [NoHeaders], but those by limits of requests in flight alone.
func Headers(styles HeaderStyle) Option {
	return func(m *Middleware) error {
		if styles > IETF|Legacy|Draft06 {
			return fmt.Errorf("httplimit: Headers(%d): want IETF, Legacy, Draft06, some of them, or NoHeaders", styles)
		}
		m.styles = styles
		return nil
	}
}

// Body sets the body of refusals; [ProblemJSON] without it.
func Body(format BodyFormat) Option {
	return func(m *Middleware) error {
		if format > PlainJSON {
			return fmt.Errorf("httplimit: Body(%d): want ProblemJSON or PlainJSON", format)
		}
		m.body = format
		return nil
	}
}

// RefuseWith makes respond write the status and body of refusals. The headers are set when it is
// called; [Result.Status] is 429, or 503 for [FailClosed].
func RefuseWith(respond func(http.ResponseWriter, *http.Request, Result)) Option {
	return func(m *Middleware) error {
		if respond == nil {
			return errors.New("httplimit: RefuseWith(nil): want a function that writes a response")
		}
		m.respond = respond
		return nil
	}
}

// Skip exempts the requests for which skip returns true from all limits. Their answers have no headers.
func Skip(skip func(*http.Request) bool) Option {
	return func(m *Middleware) error {
		if skip == nil {
			return errors.New("httplimit: Skip(nil): want a function that chooses requests")
		}
		m.skip = skip
		return nil
	}
}

// OnLimited has callback called for every limit that refuses a request, or would if it were not
// in shadow mode, before the answer is written and in the goroutine of the request.
func OnLimited(callback func(*http.Request, Check)) Option {
	return func(m *Middleware) error {
		if callback == nil {
			return errors.New("httplimit: OnLimited(nil): want a function")
		}
		m.onLimited = callback
		return nil
	}
}

// OnBackendError has callback called with every error of a [Backend], and with those of [Limit].Quota.
func OnBackendError(callback func(limit string, err error)) Option {
	return func(m *Middleware) error {
		if callback == nil {
			return errors.New("httplimit: OnBackendError(nil): want a function")
		}
		m.onBackendError = callback
		return nil
	}
}

// ObserveWith sets what counts outcomes.
func ObserveWith(metrics Metrics) Option {
	return func(m *Middleware) error {
		if metrics == nil {
			return errors.New("httplimit: ObserveWith(nil): want Metrics")
		}
		m.metrics = metrics
		return nil
	}
}

// RetryJitter adds up to most, in whole seconds, to every Retry-After, so that clients that were refused
// together do not come back together. most is 1s to 1h. random returns numbers in [0, 1) and must be
// safe for concurrent use; nil means that of math/rand/v2.
func RetryJitter(most time.Duration, random func() float64) Option {
	return func(m *Middleware) error {
		if most < time.Second || most > time.Hour || most%time.Second != 0 {
			return fmt.Errorf("httplimit: RetryJitter(%v): want whole seconds, 1s to 1h", most)
		}
		m.jitter, m.random = int64(most/time.Second), random
		if random == nil {
			m.random = mathrand.Float64
		}
		return nil
	}
}

// PartitionKeys adds the "pk" parameter to the [IETF] headers: eight bytes of an HMAC-SHA256 of the key, from which the
// key cannot be found without the secret. Processes with the same secret, of 16 bytes at least, send the same parameter
// for a key; nil draws a secret at random. It costs some allocations.
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

// Clock sets the clock of X-RateLimit-Reset; time.Now without it. Nothing else needs the time of day. now must be safe
// for concurrent use.
func Clock(now func() time.Time) Option {
	return func(m *Middleware) error {
		if now == nil {
			return errors.New("httplimit: Clock(nil): want a function that returns the time")
		}
		m.now = now
		return nil
	}
}

// Handler returns a handler that passes allowed requests to next and refuses the others. The method value is what
// routers take as a middleware.
//
// What a request has in flight ends when next returns or panics; so a connection that next has hijacked counts until it
// returns.
//
// next gets the ResponseWriter unchanged. Only if a limit that applies has a Refund function, next gets a wrapper that
// notes the status. The wrapper flushes, hijacks and pushes if the original does, and [http.ResponseController] finds
// the original behind it.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var res Result
		m.decide(&res, r)
		if !res.Allowed() {
			res.Refuse(w, r)
			return
		}
		if res.inFlight {
			defer res.Release()
		}
		res.WriteHeaders(w.Header())
		if res.refundable {
			serve(next, w, r, &res)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// BackendFailures returns how often a [Backend] has failed so far.
func (m *Middleware) BackendFailures() uint64 { return m.failures.Load() }
