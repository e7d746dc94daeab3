package otellimit

import (
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/stripe"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/otellimit/internal/instrument"
	"github.com/weir-go/weir/rpclimit"
)

// A Front counts and reports the outcomes of a middleware's limits. Make one with [RegisterHTTP] or [RegisterRPC], and
// give it to [httplimit.ObserveWith] or [rpclimit.ObserveWith]. It is safe for concurrent use.
type Front struct {
	embedded.Registration
	counters    map[string]*stripe.Counters // the map never changes
	unknownOnce sync.Once
	unregister  func() error
}

var (
	_ limits.Metrics      = (*Front)(nil)
	_ metric.Registration = (*Front)(nil)
)

// A limit contains what a front needs to know about a limit of the middleware.
type limit struct {
	name    string
	limiter *engine.Limiter // nil if the limit has no Limiter
}

// RegisterHTTP reports the decisions of limits, and the tables of their limiters as [Register] does:
//
//	front, err := otellimit.RegisterHTTP(provider, limits)
//	...
//	middleware, err := httplimit.New(limits, httplimit.ObserveWith(front))
//
// Each limit is reported under its name. If limits share a limiter, its table has the name of the first of these
// limits. Two fronts with the same names of limits need different [Attributes]. Requests that a limit in shadow mode
// would have refused are counted separately. A [limits.Backend] itself is not reported here, only the outcomes of its
// limit: see package otelredis.
//
// RegisterHTTP returns the errors of Register. It also returns an error if there are no limits, or if two limits have
// the same name.
func RegisterHTTP(p metric.MeterProvider, limits []httplimit.Limit, options ...Option) (*Front, error) {
	list := make([]limit, len(limits))
	for i, l := range limits {
		list[i] = limit{l.Name, l.Limiter}
	}
	return newFront("otellimit.RegisterHTTP", p, list, options)
}

// RegisterRPC is [RegisterHTTP] for the limits of a gRPC or Connect server or client. It counts calls and, for limits
// on messages, messages.
func RegisterRPC(p metric.MeterProvider, limits []rpclimit.Limit, options ...Option) (*Front, error) {
	list := make([]limit, len(limits))
	for i, l := range limits {
		list[i] = limit{l.Name, l.Limiter}
	}
	return newFront("otellimit.RegisterRPC", p, list, options)
}

func newFront(caller string, p metric.MeterProvider, limits []limit, options []Option) (*Front, error) {
	if len(limits) == 0 {
		return nil, fmt.Errorf("%s: no limits: want at least one", caller)
	}
	f := &Front{counters: map[string]*stripe.Counters{}}
	var registered []metric.Registration
	unregister := func() error {
		var errs []error
		for _, r := range registered {
			errs = append(errs, r.Unregister())
		}
		return errors.Join(errs...)
	}
	tables := map[*engine.Limiter]bool{nil: true}
	for _, l := range limits {
		registration, err := f.count(caller, p, l.name, options)
		if err == nil {
			registered = append(registered, registration)
			if !tables[l.limiter] {
				tables[l.limiter] = true
				if registration, err = register(caller, p, l.name, l.limiter, options); err == nil {
					registered = append(registered, registration)
				}
			}
		}
		if err != nil {
			_ = unregister() // the first error is returned
			return nil, err
		}
	}
	f.unregister = sync.OnceValue(unregister)
	return f, nil
}

// count adds the counters of a limit and registers them.
func (f *Front) count(caller string, p metric.MeterProvider, name string, options []Option) (metric.Registration, error) {
	s := instrument.Scope{Caller: caller, Kind: "limit", Key: LimitName, Name: name}
	if err := s.Apply(options); err != nil {
		return nil, err
	}
	c := stripe.New()
	f.counters[name] = c
	return instrument.Register(p, s, outcomes, c.Totals)
}

// Observe counts an outcome. It implements [limits.Metrics], takes a few nanoseconds and no lock, and does not
// allocate. For a limit that the front does not have, Observe counts nothing. The first time, it passes an error to
// otel.Handle.
func (f *Front) Observe(limit string, outcome limits.Outcome) {
	if outcome > limits.Refunded {
		return // not an outcome of a limit
	}
	c := f.counters[limit]
	if c == nil {
		f.unknownOnce.Do(func() {
			otel.Handle(fmt.Errorf("otellimit: the limit %.60q is not counted: the front was not made with it", limit))
		})
		return
	}
	c.Add(int(outcome))
}

// Unregister stops reporting. It implements [metric.Registration]. The middleware may continue to use the front.
func (f *Front) Unregister() error { return f.unregister() }
