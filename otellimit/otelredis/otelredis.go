/*
Package otelredis reports limits in Redis or Valkey (package redislimit) to OpenTelemetry. It has the metrics weir.lease
and weir.store of docs/opentelemetry.md. It is separate from package otellimit so that programs without a store do not
link a client of Redis.

	store, err := otelredis.RegisterStore(provider, "main", client)
	...
	logins, err := otelredis.Register(provider, "logins", limiter)
	...
	defer logins.Unregister()

All numbers are read only when they are collected, from the counters of package redislimit. So they add no cost to a
request.
*/
package otelredis

import (
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/otellimit"
	"github.com/weir-go/weir/otellimit/internal/instrument"
	"github.com/weir-go/weir/redislimit"
)

// StoreName is the key of the attribute that names the store to which a number belongs.
const StoreName = attribute.Key("weir.store.name")

// Register reports two things about a limiter under a name, until Unregister is called: its leases, and how many
// decisions the store failed to make. Register returns the errors of [otellimit.Register]. A front
// ([otellimit.RegisterHTTP]) reports decisions. A collection visits every lease, as [redislimit.Limiter.Stats] does.
func Register(p metric.MeterProvider, name string, limiter *redislimit.Limiter, options ...otellimit.Option) (metric.Registration, error) {
	s := instrument.Scope{Caller: "otelredis.Register", Kind: "limiter in a store", Key: otellimit.LimitName, Name: name}
	if err := s.Apply(options); err != nil {
		return nil, err
	}
	if limiter == nil {
		return nil, fmt.Errorf("otelredis.Register(%q): a nil *redislimit.Limiter: want one that redislimit.New made", name)
	}
	return instrument.Register(p, s, leases, limiter.Stats)
}

// RegisterStore reports the calls of a client and the state of its store, until Unregister is called. The program
// chooses a name for the store. RegisterStore returns the errors of [otellimit.Register].
func RegisterStore(p metric.MeterProvider, name string, client *redislimit.Client, options ...otellimit.Option) (metric.Registration, error) {
	s := instrument.Scope{Caller: "otelredis.RegisterStore", Kind: "store", Key: StoreName, Name: name}
	if err := s.Apply(options); err != nil {
		return nil, err
	}
	if client == nil {
		return nil, fmt.Errorf("otelredis.RegisterStore(%q): a nil *redislimit.Client: want one of redislimit.Open or NewClient", name)
	}
	return instrument.Register(p, s, store(), client.Health)
}

var leases = []instrument.Reading[redislimit.Stats]{
	{
		Kind: instrument.UpDownCounter, Name: "weir.lease.count", Unit: "{lease}",
		Help:  "Keys whose tokens this process has taken in advance.",
		Count: func(s redislimit.Stats) uint64 { return uint64(s.Leases) },
	},
	{
		Kind: instrument.UpDownCounter, Name: "weir.lease.token.held", Unit: "{token}",
		Help:  "Tokens in hand that the store has charged and no request has used.",
		Count: func(s redislimit.Stats) uint64 { return s.Held },
	},
	{
		Kind: instrument.UpDownCounter, Name: "weir.lease.token.debt", Unit: "{token}",
		Help:  "Tokens admitted that the store has not charged yet.",
		Count: func(s redislimit.Stats) uint64 { return s.Debt },
	},
	{
		Kind: instrument.Counter, Name: "weir.limit.fallbacks", Unit: "{decision}",
		Help:  "Decisions that the store failed to make, made by the failure policy.",
		Count: func(s redislimit.Stats) uint64 { return uint64(s.Fallbacks) },
	},
}

// errorType is the attribute key that the semantic conventions define for the class of an error. This package
// distinguishes only timeouts. The conventions define "_OTHER" for all other errors.
const (
	errorType  = attribute.Key("error.type")
	timeout    = "timeout"
	otherError = "_OTHER"
)

// partState is the key of the attribute that says whether parts of a store are available or lost.
const partState = attribute.Key("weir.store.part.state")

// store returns the readings of a client's health. Call store once per client, because the readings keep state between
// collections.
func store() []instrument.Reading[redislimit.Health] {
	failures := func(kind string, count func(redislimit.Health) uint64) instrument.Reading[redislimit.Health] {
		return instrument.Reading[redislimit.Health]{
			Kind: instrument.Counter, Name: "weir.store.failures", Unit: "{failure}",
			Help:       "Failed calls to the store, and keys whose value is not a limit's.",
			Attributes: []attribute.KeyValue{errorType.String(kind)}, Count: count,
		}
	}
	parts := func(state string, count func(redislimit.Health) uint64) instrument.Reading[redislimit.Health] {
		return instrument.Reading[redislimit.Health]{
			Kind: instrument.UpDownCounter, Name: "weir.store.part.count", Unit: "{part}",
			Help:       "Parts of the store that can fail independently: one, or the partitions of a cluster.",
			Attributes: []attribute.KeyValue{partState.String(state)}, Count: count,
		}
	}
	var otherFailures monotonic
	return []instrument.Reading[redislimit.Health]{
		{
			Kind: instrument.Counter, Name: "weir.store.calls", Unit: "{call}",
			Help:  "Calls to the store, of up to 64 keys each.",
			Count: func(h redislimit.Health) uint64 { return uint64(h.Calls) },
		},
		failures(timeout, func(h redislimit.Health) uint64 { return uint64(h.Timeouts) }),
		failures(otherError, func(h redislimit.Health) uint64 { return otherFailures.advance(h.Failures - h.Timeouts) }),
		parts("available", func(h redislimit.Health) uint64 { return uint64(h.Parts - h.Lost) }),
		parts("lost", func(h redislimit.Health) uint64 { return uint64(h.Lost) }),
		{
			Kind: instrument.Seconds, Name: "weir.store.lost.time", Unit: "s",
			Help:    "Time for which a part of the store was lost, in all outages together.",
			Seconds: func(h redislimit.Health) float64 { return h.LostTime.Seconds() },
		},
	}
}

// A monotonic is a counter of the failures that are not timeouts: failures minus timeouts. A call that times out counts
// as a timeout a moment before it counts as a failure, so the difference may briefly be too small. The difference is
// never too large, so the counter reports the largest difference so far.
type monotonic struct{ largest atomic.Int64 }

// advance returns the largest difference after an update with n.
func (m *monotonic) advance(n int64) uint64 {
	for {
		largest := m.largest.Load()
		if n <= largest {
			return uint64(largest)
		}
		if m.largest.CompareAndSwap(largest, n) {
			return uint64(n)
		}
	}
}
