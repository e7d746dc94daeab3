package otellimit

import (
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/otellimit/internal/instrument"
)

// Refusals counts the refusals of one limiter, for programs that call the engine directly. The zero Refusals is ready
// for use. Do not use it for two limiters, and do not copy it after its first use.
//
//	var refusals otellimit.Refusals
//	limiter, err := engine.New(policy, refusals.Count())
//	...
//	registration, err := otellimit.RegisterRefusals(provider, "logins", &refusals)
type Refusals struct{ count atomic.Uint64 }

// Count returns the option that makes a limiter count its refusals. A refusal then costs one more atomic addition. An
// admitted request costs nothing more.
func (r *Refusals) Count() engine.Option {
	return engine.Observe(func(engine.Key, uint64) { r.count.Add(1) }, 1)
}

// Total returns how many refusals there were.
func (r *Refusals) Total() uint64 { return r.count.Load() }

// RegisterRefusals reports refusals under the name of a limit until Unregister is called. It returns the errors of
// [Register]. Register may use the same name, because Register reports other numbers.
func RegisterRefusals(p metric.MeterProvider, name string, r *Refusals, options ...Option) (metric.Registration, error) {
	s := instrument.Scope{Caller: "otellimit.RegisterRefusals", Kind: "limiter's refusals", Key: LimitName, Name: name}
	if err := s.Apply(options); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fmt.Errorf("otellimit.RegisterRefusals(%q): nil Refusals: want those that a limiter counts", name)
	}
	return instrument.Register(p, s, refusals, r.Total)
}

var refusals = []instrument.Reading[uint64]{{
	Kind: instrument.Counter, Name: "weir.limit.refusals", Unit: "{refusal}",
	Help:  "Requests that the engine refused, for all callers.",
	Count: func(n uint64) uint64 { return n },
}}
