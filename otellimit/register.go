package otellimit

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/otellimit/internal/instrument"
)

// LimitName is the key of the attribute that names the limit to which a number belongs.
const LimitName = attribute.Key("weir.limit.name")

// An Option changes one thing about what is registered.
type Option = instrument.Option

// Attributes adds up to 16 attributes to all series of a registration, for example to distinguish two servers of a
// program. Keys must not begin with weir. or otel., and must not be error.type. The values are fixed, so they add no
// series.
func Attributes(attributes ...attribute.KeyValue) Option {
	return func(s *instrument.Scope) error { return s.Add(attributes) }
}

// Register reports the table of a limiter under a name until Unregister is called: 11 series whose metrics begin with
// weir.table (docs/opentelemetry.md). These series do not show decisions, because the engine does not count admitted
// requests. For decisions, see [RegisterHTTP], [RegisterRPC] and [RegisterRefusals].
//
// The provider p is the MeterProvider of the program, such as otel.GetMeterProvider(). The name has 1 to 1,024
// printable ASCII characters. Register returns an error if the name is already registered with the same provider and
// the same [Attributes]. Register panics for a zero [engine.Limiter]. It is safe for concurrent use.
//
// A collection calls [engine.Limiter.Stats], which neither waits for requests nor delays them. Until Unregister is
// called, the registration refers to the provider and the limiter. It reports the limiter even after the limiter was
// closed.
func Register(p metric.MeterProvider, name string, limiter *engine.Limiter, options ...Option) (metric.Registration, error) {
	return register("otellimit.Register", p, name, limiter, options)
}

func register(caller string, p metric.MeterProvider, name string, limiter *engine.Limiter, options []Option) (metric.Registration, error) {
	s := instrument.Scope{Caller: caller, Kind: "limiter", Key: LimitName, Name: name}
	if err := s.Apply(options); err != nil {
		return nil, err
	}
	if limiter == nil {
		return nil, fmt.Errorf("%s(%q): %w", caller, name, errors.New("a nil *engine.Limiter: want one that engine.New made"))
	}
	limiter.Stats() // so that a zero limiter panics now, and not at a collection
	return instrument.Register(p, s, table, limiter.Stats)
}

// overflowPolicy is the attribute key for what happened when there was no room for a key. The values of the attribute
// are the values of [engine.OverflowPolicy].
const overflowPolicy = attribute.Key("weir.table.overflow.policy")

func overflows(policy engine.OverflowPolicy, count func(engine.Stats) uint64) instrument.Reading[engine.Stats] {
	return instrument.Reading[engine.Stats]{
		Kind: instrument.Counter, Name: "weir.table.overflows", Unit: "{overflow}",
		Help:       "New keys that found no room in the table.",
		Attributes: []attribute.KeyValue{overflowPolicy.String(policy.String())}, Count: count,
	}
}

// table has the readings of the statistics of a limiter.
var table = []instrument.Reading[engine.Stats]{
	{
		Kind: instrument.UpDownCounter, Name: "weir.table.key.count", Unit: "{key}",
		Help:  "Keys that had used some of their limit at the last sweep.",
		Count: func(s engine.Stats) uint64 { return s.Keys },
	},
	{
		Kind: instrument.UpDownCounter, Name: "weir.table.slot.limit", Unit: "{slot}",
		Help:  "Slots of the table, which is sized to be six tenths full.",
		Count: func(s engine.Stats) uint64 { return s.Slots },
	},
	{
		Kind: instrument.UpDownCounter, Name: "weir.table.memory.limit", Unit: "By",
		Help:  "Memory of the table, which the system provides as keys come.",
		Count: func(s engine.Stats) uint64 { return s.Bytes },
	},
	overflows(engine.Evict, func(s engine.Stats) uint64 { return s.Evictions }),
	overflows(engine.Refuse, func(s engine.Stats) uint64 { return s.NoRoom }),
	overflows(engine.Admit, func(s engine.Stats) uint64 { return s.Unrecorded }),
	{
		Kind: instrument.Counter, Name: "weir.table.token.forgiven", Unit: "{token}",
		Help:  "Tokens that evicted keys still owed.",
		Count: func(s engine.Stats) uint64 { return s.Forgiven },
	},
	{
		Kind: instrument.Counter, Name: "weir.table.token.forgotten", Unit: "{token}",
		Help:  "Tokens of a limit in flight that were never given back.",
		Count: func(s engine.Stats) uint64 { return s.Forgotten },
	},
	{
		Kind: instrument.Counter, Name: "weir.table.key.reclaimed", Unit: "{key}",
		Help:  "Idle keys forgotten by sweeps.",
		Count: func(s engine.Stats) uint64 { return s.Reclaimed },
	},
	{
		Kind: instrument.Counter, Name: "weir.table.sweeps", Unit: "{sweep}",
		Help:  "Complete sweeps of the table.",
		Count: func(s engine.Stats) uint64 { return s.Sweeps },
	},
	{
		Kind: instrument.Counter, Name: "weir.table.retries", Unit: "{retry}",
		Help:  "Searches of the table that started over because another request had changed it.",
		Count: func(s engine.Stats) uint64 { return s.Retries },
	},
}
