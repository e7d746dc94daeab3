package otellimit

import (
	"fmt"
	"reflect"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/otellimit/internal/instrument"
)

// FrontName is the attribute key that names a front, for numbers of all its limits together.
const FrontName = attribute.Key("weir.front.name")

// A Waiter is a *[httplimit.Middleware] or a *[rpclimit.Limits].
type Waiter interface {
	// Waiting returns how many requests wait for tokens now.
	Waiting() int64
}

// RegisterWaiting reports how many requests wait for tokens (httplimit.Limit.MaxWait, rpclimit.Limit.MaxWait), until
// Unregister is called. The program chooses a name for the front. RegisterWaiting returns the errors of [Register].
func RegisterWaiting(p metric.MeterProvider, name string, w Waiter, options ...Option) (metric.Registration, error) {
	s := instrument.Scope{Caller: "otellimit.RegisterWaiting", Kind: "front", Key: FrontName, Name: name}
	if err := s.Apply(options); err != nil {
		return nil, err
	}
	if v := reflect.ValueOf(w); w == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("otellimit.RegisterWaiting(%q): nothing to ask: want a middleware or limits", name)
	}
	return instrument.Register(p, s, waiting, w.Waiting)
}

var waiting = []instrument.Reading[int64]{{
	Kind: instrument.UpDownCounter, Name: "weir.front.request.waiting", Unit: "{request}",
	Help:  "Requests that wait for their tokens.",
	Count: func(n int64) uint64 { return uint64(max(n, 0)) },
}}
