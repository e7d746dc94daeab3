package envoy

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/weir-go/weir/cmd/internal/sealed"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// Options are the settings of a Service. The zero Options are envoyproxy/ratelimit's defaults.
type Options struct {
	// MaxKeys is the number of counters for which each table has room. 0 means 1,000,000. See engine.MaxKeys.
	MaxKeys int
	// Overflow decides what happens if a new counter finds its table full. With engine.Evict, it replaces the counter
	// with the fewest hits. With engine.Refuse, the request is refused. [Service.Tables] reports how often each
	// happened.
	Overflow engine.OverflowPolicy
	// NearLimitRatio is a share of a limit, from 0 to 1. Hits above this share count as near the limit. nil means 0.8.
	NearLimitRatio *float32
	// ShadowMode makes the overall code OK even if limits refuse.
	ShadowMode bool
	// QuotaMode puts all rules into quota mode.
	QuotaMode bool
	// StopWhenOver is for requests that exceed some of their limits: it charges only the exceeded limits.
	StopWhenOver bool
	// ResponseHeaders report the nearest limit to the client. RequestHeaders report it to the upstream.
	ResponseHeaders, RequestHeaders Headers
	// AllHeaders reports all limits to the client, in the headers RateLimit-Policy and RateLimit.
	AllHeaders bool
	// DynamicMetadata adds data to the answer: the request, and the metadata of the rules that admitted it.
	DynamicMetadata bool
	// MaxStats is the largest number of names in the statistics that come from requests. 0 means 10,000.
	MaxStats int
	// Store keeps the counters that several replicas share. nil means counters in memory. Each decision calls the
	// Store, except for the cases described at MemoBytes and Replicas.
	Store *redislimit.Client
	// PerSecondStore keeps the counters of limits whose window is a second. nil means that Store keeps them.
	PerSecondStore *redislimit.Client
	// OnLoss says how requests are answered while a store is lost. The value Share needs Replicas.
	OnLoss Loss
	// Debts is the path prefix of files in which this process notes what it owes the Store. The next process charges
	// the Store ([redislimit.DebtFiles]). "" means no files. Each set of store addresses needs a different prefix.
	Debts string
	// MemoBytes bounds the memory in which the service remembers exceeded fixed windows of the Store. Until such a
	// window ends, its limit refuses without a call to the Store and does not count the hits. A value below 128, such
	// as the default 0, turns this off.
	MemoBytes int
	// Replicas is how many replicas share the Store, from 0 to 100,000. If it is not 0, token buckets of 100/s and more
	// are decided from leases, which are tokens that the store has charged in advance. redislimit.Leased says how many
	// more requests this may admit. Windows still call the store for each decision. The reason is that a lease has
	// tokens of a single limit, but several limits share the count of a window.
	Replicas int
	// ReservationKey names a file of 32 to 4,096 random bytes. The service seals the ids of reservations with it.
	// Processes with the same file accept each other's ids. Without a file, ids are valid for this process only.
	ReservationKey string
	// ReservationLifetime is how long a reservation may give tokens back, from 1s to 24h. 0 means 10m.
	ReservationLifetime time.Duration
	// Observer receives the decisions. It may be nil.
	Observer Observer
	// Log gets a line when limits of values are read, and when they cannot be read. nil means no log.
	Log *slog.Logger
	// Clock returns the time. It is for tests. nil means the engine's clock.
	Clock func() time.Time
}

func (o *Options) now() time.Time {
	if o.Clock != nil {
		return o.Clock()
	}
	return time.Now()
}

// Headers are the names of three headers. The zero Headers turn them off.
type Headers struct{ Limit, Remaining, Reset string }

const (
	defaultMaxKeys        = 1_000_000
	defaultNearLimitRatio = 0.8
	defaultMaxStats       = 10_000

	maxReplicas = 100_000
)

// check fills in the defaults, and returns an error for a value out of range.
func (o Options) check() (Options, error) {
	if o.MaxKeys == 0 {
		o.MaxKeys = defaultMaxKeys
	}
	if o.MaxStats == 0 {
		o.MaxStats = defaultMaxStats
	}
	if o.ReservationLifetime == 0 {
		o.ReservationLifetime = sealed.DefaultLifetime
	}
	if o.Overflow != engine.Evict && o.Overflow != engine.Refuse {
		return o, fmt.Errorf("envoy: Overflow of %d: want engine.Evict or engine.Refuse", o.Overflow)
	}
	if o.Replicas < 0 || o.Replicas > maxReplicas {
		return o, fmt.Errorf("envoy: Replicas of %d: want 0 to %d", o.Replicas, maxReplicas)
	}
	if o.Replicas > 0 && o.Store == nil {
		return o, fmt.Errorf("envoy: Replicas of %d without a Store: replicas share nothing without one", o.Replicas)
	}
	if o.OnLoss > Open {
		return o, fmt.Errorf("envoy: OnLoss of %d: want Closed, Share or Open", o.OnLoss)
	}
	if o.OnLoss != Closed && o.Store == nil {
		return o, fmt.Errorf("envoy: OnLoss of %d without a Store: counters in memory are never lost", o.OnLoss)
	}
	if o.OnLoss == Share && o.Replicas == 0 {
		return o, fmt.Errorf("envoy: OnLoss of Share with Replicas of 0: want how many share the limits, 1 to %d", maxReplicas)
	}
	if o.MemoBytes < 0 {
		return o, fmt.Errorf("envoy: MemoBytes of %d: want 0 or more", o.MemoBytes)
	}
	if o.MaxStats < 0 {
		return o, fmt.Errorf("envoy: MaxStats of %d: want 1 or more", o.MaxStats)
	}
	if o.NearLimitRatio == nil {
		ratio := float32(defaultNearLimitRatio)
		o.NearLimitRatio = &ratio
	}
	if r := *o.NearLimitRatio; math.IsNaN(float64(r)) || r < 0 || r > 1 {
		return o, fmt.Errorf("envoy: NearLimitRatio of %v: want 0 to 1", r)
	}
	return o, nil
}
