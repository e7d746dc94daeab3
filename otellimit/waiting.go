package otellimit

import (
	"fmt"
	"reflect"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/otellimit/internal/instrument"
)

// FrontName is the key of the attribute that says of which front a number is, where its limits share it.
const FrontName = attribute.Key("weir.front.name")

// A Waiter is a *[httplimit.Middleware] or a *[rpclimit.Limits].
type Waiter interface {
	// Waiting returns how many requests wait for tokens now.
	Waiting() int64
}

// RegisterWaiting has it reported how many requests wait for tokens (httplimit.Limit.MaxWait, rpclimit.Limit.MaxWait),
// under a name that the program gives the front, until Unregister is called. Its errors are those of [Register].
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
