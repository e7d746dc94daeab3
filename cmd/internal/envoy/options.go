package envoy

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/cmd/internal/sealed"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// Options are what a Service is made with. The zero Options are the reference's defaults.
type Options struct {
	// MaxKeys is how many counters each table has room for: 1,000,000 if it is 0. See engine.MaxKeys.
	MaxKeys int
	// Overflow says what happens to a new counter in a full table: engine.Evict has it take the place of the one with
	// the fewest hits, engine.Refuse refuses it. Both are counted: see [Service.Tables].
	Overflow engine.OverflowPolicy
	// NearLimitRatio is the share of a limit from which hits count as near it: 0 to 1, 0.8 if it is nil.
	NearLimitRatio *float32
	// ShadowMode makes the overall code OK whatever the limits say.
	ShadowMode bool
	// QuotaMode makes all rules be in quota mode.
	QuotaMode bool
	// StopWhenOver charges only the exceeded limits if a limit of the request is exceeded, instead of all of them.
	StopWhenOver bool
	// ResponseHeaders and RequestHeaders tell the client, or the upstream, about the limit that is nearest.
	ResponseHeaders, RequestHeaders Headers
	// AllHeaders tells the client about all limits, by the headers RateLimit-Policy and RateLimit.
	AllHeaders bool
	// DynamicMetadata puts the request and the metadata of the rules that passed into the answer.
	DynamicMetadata bool
	// MaxStats bounds the names in statistics that stem from requests: 10,000 if it is 0.
	MaxStats int
	// Store keeps the counters of several replicas together: each decision then asks it. nil: they are kept in memory.
	Store *redislimit.Client
	// PerSecondStore keeps the counters of limits whose window is a second. nil: Store does.
	PerSecondStore *redislimit.Client
	// OnLoss says what answers while a Store is lost. Share needs Replicas.
	OnLoss Loss
	// MemoBytes bounds what is remembered of fixed windows in the Store that are exceeded: such a limit refuses without
	// the Store until its window ends, and does not count the hits. 0, the default, and less than 128 remember none.
	MemoBytes int
	// Replicas is how many replicas share the Store. If it is not 0, token buckets of 100/s and more are decided from
	// leases, tokens that the store has charged in advance: see redislimit.Leased for what that may admit more. Windows
	// ask the store all the same: their counts are compared with the limits of rules and requests, which a store that
	// lends tokens of one limit cannot do. 0 to 100,000.
	Replicas int
	// ReservationKey names a file of 32 to 4,096 random bytes, by which the ids of reservations are sealed: processes
	// with the same file accept each other's. Without it the key is random, and the ids are good for this process only.
	ReservationKey string
	// ReservationLifetime is how long a reservation may give something back: 1s to 24h, 10m if it is 0.
	ReservationLifetime time.Duration
	// Observer is told what is decided. nil for none.
	Observer Observer
	// Clock tells the time, for tests. It is nil for the engine's clock.
	Clock func() time.Time
}

func (o *Options) now() time.Time {
	if o.Clock != nil {
		return o.Clock()
	}
	return time.Now()
}

// Headers are the names of three headers. The zero Headers are none.
type Headers struct{ Limit, Remaining, Reset string }

const (
	defaultMaxKeys        = 1_000_000
	defaultNearLimitRatio = 0.8
	defaultMaxStats       = 10_000

	maxReplicas = 100_000
)

// check fills in the defaults and refuses what is out of range.
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
