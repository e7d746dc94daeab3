// Package instrument makes asynchronous instruments from existing counters.
package instrument

import (
	"context"
	"fmt"
	"math"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"

	"github.com/weir-go/weir/internal/version"
)

// ScopeName is the name of the instrumentation scope.
const ScopeName = "github.com/weir-go/weir/otellimit"

// A Kind is a kind of asynchronous instrument.
type Kind uint8

const (
	// Counter only increases.
	Counter Kind = iota
	// UpDownCounter rises and falls. Values of several processes can be added up.
	UpDownCounter
	// Seconds is a counter of time.
	Seconds
)

// A Reading describes one series: a metric with attributes. It has a function that returns the value of the series from
// a snapshot.
type Reading[S any] struct {
	Kind       Kind
	Name       string
	Unit       string // UCUM
	Help       string
	Attributes []attribute.KeyValue // in addition to the attributes of the scope
	Count      func(S) uint64       // for a Counter and an UpDownCounter
	Seconds    func(S) float64      // for Seconds
}

// Register reports the readings at each collection, in one callback from one snapshot. Readings with the same name may
// differ only in their attributes and functions. The function read returns a snapshot. It may be called from any
// goroutine. If the provider has several readers, calls of read may be concurrent.
func Register[S any](p metric.MeterProvider, s Scope, readings []Reading[S], read func() S) (metric.Registration, error) {
	release, err := s.claim(p)
	if err != nil {
		return nil, err
	}
	callback, err := report(p.Meter(ScopeName, metric.WithInstrumentationVersion(moduleVersion())), &s, readings, read)
	if err != nil {
		release()
		return nil, s.error("%w", err)
	}
	return &registration{unregister: sync.OnceValue(func() error {
		defer release()
		return callback.Unregister()
	})}, nil
}

// A registration is a metric.Registration. Only the first call of Unregister has an effect.
type registration struct {
	embedded.Registration
	unregister func() error
}

// Unregister implements [metric.Registration].
func (r *registration) Unregister() error { return r.unregister() }

// A series is a reading with its instrument.
type series[S any] struct {
	*Reading[S]
	count      metric.Int64Observable   // for a Counter and an UpDownCounter
	seconds    metric.Float64Observable // for Seconds
	attributes []metric.ObserveOption
}

// report registers the callback.
func report[S any](m metric.Meter, s *Scope, readings []Reading[S], read func() S) (metric.Registration, error) {
	list := make([]series[S], len(readings))
	var instruments []metric.Observable
	for i := range readings {
		entry := series[S]{Reading: &readings[i], attributes: s.observeOptions(readings[i].Attributes)}
		if err := entry.make(m); err != nil {
			return nil, err
		}
		list[i] = entry
		if entry.seconds != nil {
			instruments = append(instruments, entry.seconds)
		} else {
			instruments = append(instruments, entry.count)
		}
	}
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		snapshot := read()
		for i := range list {
			list[i].observe(o, snapshot)
		}
		return nil
	}, instruments...)
}

// make makes the instrument. If the meter has already made an instrument of the same name, make uses this instrument.
func (s *series[S]) make(m metric.Meter) (err error) {
	unit, help := metric.WithUnit(s.Unit), metric.WithDescription(s.Help)
	switch s.Kind {
	case Counter:
		s.count, err = m.Int64ObservableCounter(s.Name, unit, help)
	case UpDownCounter:
		s.count, err = m.Int64ObservableUpDownCounter(s.Name, unit, help)
	case Seconds:
		s.seconds, err = m.Float64ObservableCounter(s.Name, unit, help)
	}
	if err != nil {
		return fmt.Errorf("the instrument %s: %w", s.Name, err)
	}
	return nil
}

func (s *series[S]) observe(o metric.Observer, snapshot S) {
	if s.seconds != nil {
		o.ObserveFloat64(s.seconds, s.Seconds(snapshot), s.attributes...)
		return
	}
	o.ObserveInt64(s.count, int64(min(s.Count(snapshot), math.MaxInt64)), s.attributes...)
}

// moduleVersion returns the version of this module in the program, or "" if the program was built in a checkout.
var moduleVersion = sync.OnceValue(func() string {
	for _, module := range version.Info().Deps {
		if module.Path == ScopeName {
			return module.Version
		}
	}
	return ""
})
