package otellimit_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/otellimit"
	"github.com/weir-go/weir/otellimit/internal/collected"
)

// TestTable checks every metric of a table, after traffic whose effect on each metric is known.
func TestTable(t *testing.T) {
	const asked = 5000
	for policy := engine.Evict; policy <= engine.Admit; policy++ {
		t.Run(policy.String(), func(t *testing.T) {
			p, collect := provider(t)
			l := limiter(t, engine.TokenBucket(engine.Per(1, time.Hour), 1), engine.MaxKeys(100), engine.Overflow(policy))
			_, err := otellimit.Register(p, "k", l)
			require.NoError(t, err)
			refused := 0
			for i := range asked {
				if !l.AllowKey(l.KeyUint64(uint64(i))) {
					refused++
				}
			}
			l.Sweep()
			l.Sweep()
			got := collect()
			keys := got["weir.table.key.count weir.limit.name=k"]
			slots := got["weir.table.slot.limit weir.limit.name=k"]
			require.Greater(t, keys, 0.0)
			require.LessOrEqual(t, keys, slots)
			require.Less(t, slots, float64(asked))
			homeless := asked - keys // each key came once, and either has a record or caused an overflow
			overflows := map[engine.OverflowPolicy]float64{policy: homeless}
			forgiven := overflows[engine.Evict] // one token for each eviction
			if policy == engine.Refuse {
				assert.Equal(t, homeless, float64(refused))
			} else {
				assert.Zero(t, refused)
			}
			assert.Equal(t, collected.Series{
				"weir.table.key.count weir.limit.name=k":                                   keys,
				"weir.table.slot.limit weir.limit.name=k":                                  float64(l.Stats().Slots),
				"weir.table.memory.limit weir.limit.name=k":                                float64(l.Stats().Bytes),
				"weir.table.overflows weir.limit.name=k,weir.table.overflow.policy=evict":  overflows[engine.Evict],
				"weir.table.overflows weir.limit.name=k,weir.table.overflow.policy=refuse": overflows[engine.Refuse],
				"weir.table.overflows weir.limit.name=k,weir.table.overflow.policy=admit":  overflows[engine.Admit],
				"weir.table.token.forgiven weir.limit.name=k":                              forgiven,
				"weir.table.token.forgotten weir.limit.name=k":                             0,
				"weir.table.key.reclaimed weir.limit.name=k":                               0,
				"weir.table.sweeps weir.limit.name=k":                                      2,
				"weir.table.retries weir.limit.name=k":                                     0,
			}, got)
		})
	}
}

// TestUnregister: when a registration ends, its series end, and its name can be registered again. Other registrations
// stay.
func TestUnregister(t *testing.T) {
	p, collect := provider(t)
	first, err := otellimit.Register(p, "first", bucket(t, 1))
	require.NoError(t, err)
	_, err = otellimit.Register(p, "second", bucket(t, 1))
	require.NoError(t, err)
	of := func(name string) (n int) {
		for key := range collect() {
			if strings.Contains(key, "weir.limit.name="+name) {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 11, of("first"))
	require.NoError(t, first.Unregister())
	require.NoError(t, first.Unregister(), "a second time")
	assert.Zero(t, of("first"))
	assert.Equal(t, 11, of("second"))

	again, err := otellimit.Register(p, "first", bucket(t, 1))
	require.NoError(t, err)
	require.NoError(t, first.Unregister(), "does not end the one that came after")
	assert.Equal(t, 11, of("first"))
	_, err = otellimit.Register(p, "first", bucket(t, 1))
	assert.ErrorContains(t, err, "registered already", "an old registration does not free the name of a new one")
	require.NoError(t, again.Unregister())
}

// TestNames: with one provider, a name can be registered once for each kind and each set of attributes.
func TestNames(t *testing.T) {
	p, collect := provider(t)
	l := bucket(t, 1)
	register := func(p metric.MeterProvider, attributes ...attribute.KeyValue) error {
		_, err := otellimit.Register(p, "a", l, otellimit.Attributes(attributes...))
		return err
	}
	require.NoError(t, register(p))
	assert.EqualError(t, register(p), `otellimit.Register("a"): the limiter of that name and these attributes is registered `+
		`already: want another name, another attribute, or Unregister of the first`)
	require.NoError(t, register(p, attribute.String("server", "admin")))
	assert.ErrorContains(t, register(p, attribute.String("server", "admin")), "registered already")
	require.NoError(t, register(p, attribute.String("server", "public")))
	assert.Len(t, collect().Of("weir.table.sweeps "), 3)
	assert.Contains(t, collect(), "weir.table.sweeps server=admin,weir.limit.name=a")

	other, _ := provider(t)
	require.NoError(t, register(other))
	none, err := otellimit.Register(noop.NewMeterProvider(), "a", l)
	require.NoError(t, err)
	require.NoError(t, none.Unregister(), "all of that type are one provider")
	_, err = otellimit.RegisterRefusals(p, "a", new(otellimit.Refusals))
	require.NoError(t, err, "another kind")
}

// uncomparable is a provider of a type that == cannot compare.
type uncomparable struct {
	noop.MeterProvider
	_ []int
}

// fixed is a provider that always returns the same meter, such as a meter that refuses instruments or callbacks.
type fixed struct {
	noop.MeterProvider
	meter metric.Meter
}

func (f *fixed) Meter(string, ...metric.MeterOption) metric.Meter { return f.meter }

type noInstruments struct{ noop.Meter }

func (noInstruments) Int64ObservableCounter(string, ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	return nil, fmt.Errorf("no counters here")
}

type noCallbacks struct{ noop.Meter }

func (noCallbacks) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, fmt.Errorf("no callbacks here")
}

// TestBadInput: each error names the function, the bad value, and what is accepted. The name stays free.
func TestBadInput(t *testing.T) {
	p, collect := provider(t)
	l := bucket(t, 1)
	many := make([]attribute.KeyValue, 17)
	for i := range many {
		many[i] = attribute.Int(fmt.Sprint("k", i), i)
	}
	attributes := func(kv ...attribute.KeyValue) otellimit.Option { return otellimit.Attributes(kv...) }
	for want, register := range map[string]func() (metric.Registration, error){
		`otellimit.Register(""): a name of 0 characters: want 1 to 1,024`: func() (metric.Registration, error) {
			return otellimit.Register(p, "", l)
		},
		`a name of 1025 characters: want 1 to 1,024`: func() (metric.Registration, error) {
			return otellimit.Register(p, strings.Repeat("x", 1025), l)
		},
		`otellimit.Register("a\nb"): want a name of 1 to 1,024 printable ASCII characters`: func() (metric.Registration, error) {
			return otellimit.Register(p, "a\nb", l)
		},
		`otellimit.Register("a"): a nil *engine.Limiter`: func() (metric.Registration, error) {
			return otellimit.Register(p, "a", nil)
		},
		`otellimit.Register("a"): a MeterProvider of type <nil>`: func() (metric.Registration, error) {
			return otellimit.Register(nil, "a", l)
		},
		`otellimit.Register("a"): a nil MeterProvider of type *metric.MeterProvider`: func() (metric.Registration, error) {
			return otellimit.Register((*sdk.MeterProvider)(nil), "a", l)
		},
		`a MeterProvider of type otellimit_test.uncomparable`: func() (metric.Registration, error) {
			return otellimit.Register(uncomparable{}, "a", l)
		},
		`otellimit.Register("a"): option 2 of 2 is nil`: func() (metric.Registration, error) {
			return otellimit.Register(p, "a", l, attributes(), nil)
		},
		`17 attributes: want 16 at most`: func() (metric.Registration, error) {
			return otellimit.Register(p, "a", l, attributes(many[:9]...), attributes(many[9:]...))
		},
		`the attribute "weir.limit.name": want a key`: func() (metric.Registration, error) {
			return otellimit.Register(p, "a", l, attributes(otellimit.LimitName.String("b")))
		},
		`the attribute "error.type"`: func() (metric.Registration, error) {
			return otellimit.Register(p, "a", l, attributes(attribute.String("error.type", "b")))
		},
		`the attribute "otel.metric.overflow"`: func() (metric.Registration, error) {
			return otellimit.Register(p, "a", l, attributes(attribute.Bool("otel.metric.overflow", true)))
		},
		`the attribute "" has no key or no value`: func() (metric.Registration, error) {
			return otellimit.Register(p, "a", l, attributes(attribute.String("", "x")))
		},
		`the attribute "x" occurs twice`: func() (metric.Registration, error) {
			return otellimit.Register(p, "a", l, attributes(attribute.Int("x", 1)), attributes(attribute.Int("x", 2)))
		},
		`the instrument weir.table.overflows: no counters here`: func() (metric.Registration, error) {
			return otellimit.Register(&fixed{meter: noInstruments{}}, "a", l)
		},
		`otellimit.Register("a"): no callbacks here`: func() (metric.Registration, error) {
			return otellimit.Register(&fixed{meter: noCallbacks{}}, "a", l)
		},
		`otellimit.RegisterRefusals("a"): nil Refusals`: func() (metric.Registration, error) {
			return otellimit.RegisterRefusals(p, "a", nil)
		},
		`otellimit.RegisterRefusals("")`: func() (metric.Registration, error) {
			return otellimit.RegisterRefusals(p, "", new(otellimit.Refusals))
		},
	} {
		for range 2 {
			r, err := register()
			assert.ErrorContains(t, err, want)
			assert.Nil(t, r)
		}
	}
	assert.PanicsWithValue(t, "engine: a Limiter that is nil or zero: make it with engine.New, and look at New's error", func() {
		_, _ = otellimit.Register(p, "a", new(engine.Limiter))
	})
	assert.Empty(t, collect())
	_, err := otellimit.Register(p, "a", l)
	assert.NoError(t, err)
}

// TestAFailedRegistrationFreesTheName: after a registration fails, its name is free, even if the provider caused the
// failure.
func TestAFailedRegistrationFreesTheName(t *testing.T) {
	for _, meter := range []metric.Meter{noInstruments{}, noCallbacks{}} {
		p := &fixed{meter: meter}
		_, err := otellimit.Register(p, "a", bucket(t, 1))
		require.Error(t, err)
		p.meter = noop.Meter{}
		_, err = otellimit.Register(p, "a", bucket(t, 1))
		assert.NoError(t, err)
	}
}

// TestRefusals: the counter of refusals counts every refusal of the engine, and no admitted request.
func TestRefusals(t *testing.T) {
	p, collect := provider(t)
	var refusals otellimit.Refusals
	l := limiter(t, engine.TokenBucket(engine.Per(1, time.Hour), 10), refusals.Count())
	r, err := otellimit.RegisterRefusals(p, "logins", &refusals)
	require.NoError(t, err)
	assert.Equal(t, collected.Series{"weir.limit.refusals weir.limit.name=logins": 0}, collect())
	for range 100 {
		l.Allow("k")
	}
	l.Take("k", 11)
	l.Take("another", 1)
	assert.Equal(t, collected.Series{"weir.limit.refusals weir.limit.name=logins": 91}, collect())
	require.NoError(t, r.Unregister())
	assert.Empty(t, collect())
}

// TestCardinality: the number of series depends on the registrations, and not on the number of keys.
func TestCardinality(t *testing.T) {
	p, collect := provider(t)
	var refusals otellimit.Refusals
	l := limiter(t, engine.TokenBucket(engine.Per(1, time.Hour), 1), refusals.Count())
	_, err := otellimit.Register(p, "a", l)
	require.NoError(t, err)
	_, err = otellimit.RegisterRefusals(p, "a", &refusals)
	require.NoError(t, err)
	before := collect()
	for i := range 20_000 {
		l.Allow(fmt.Sprint("key ", i))
		l.Allow(fmt.Sprint("key ", i))
	}
	after := collect()
	assert.Len(t, after, 12)
	for key := range after {
		assert.Contains(t, before, key)
		assert.NotContains(t, key, "key ")
	}
}

func TestConcurrentCollection(t *testing.T) {
	const readers, workers, rounds = 2, 4, 500
	var manual [readers]*sdk.ManualReader
	options := make([]sdk.Option, readers)
	for i := range manual {
		manual[i] = sdk.NewManualReader()
		options[i] = sdk.WithReader(manual[i])
	}
	p := sdk.NewMeterProvider(options...)
	defer func() { require.NoError(t, p.Shutdown(t.Context())) }()
	var refusals otellimit.Refusals
	l := limiter(t, engine.TokenBucket(engine.Per(1, time.Hour), 1), refusals.Count())
	_, err := otellimit.Register(p, "steady", l)
	require.NoError(t, err)
	_, err = otellimit.RegisterRefusals(p, "steady", &refusals)
	require.NoError(t, err)

	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range rounds {
				l.Allow(fmt.Sprint(w, i%10))
			}
		})
		all.Go(func() {
			for range rounds / 10 {
				r, err := otellimit.Register(p, fmt.Sprint("coming and going ", w), l)
				if assert.NoError(t, err) {
					assert.NoError(t, r.Unregister())
				}
			}
		})
	}
	for _, reader := range manual {
		all.Go(func() {
			last := 0.0
			for range rounds / 10 {
				now := collected.From(t, reader)["weir.limit.refusals weir.limit.name=steady"]
				assert.GreaterOrEqual(t, now, last)
				last = now
			}
		})
	}
	all.Wait()
	for _, reader := range manual {
		s := collected.From(t, reader)
		assert.Len(t, s, 12, "those that went left nothing")
		assert.EqualValues(t, workers*(rounds-10), s["weir.limit.refusals weir.limit.name=steady"])
	}
}

// TestOneNameOfMany: if many goroutines register one name at the same time, exactly one succeeds.
func TestOneNameOfMany(t *testing.T) {
	p, collect := provider(t)
	l := bucket(t, 1)
	var all sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		all.Go(func() { _, errs[i] = otellimit.Register(p, "a", l) })
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		}
	}
	assert.Equal(t, 1, made)
	assert.Len(t, collect(), 11)
}
