package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// A Scenario describes what to simulate. [Default] sets all fields that must be set. The other fields are Traffic,
// Costs, Jitter, Loss, Away, AwayEvery, CutOff, OnLoss, Partitions, AwayPartitions, Skew and Overdraft.
type Scenario struct {
	Nodes int           // machines that share the limit, 1 to 10,000
	Keys  int           // 1 to 10,000,000; each has its own limit
	Zipf  float64       // the k-th key gets k^-Zipf times as many requests as the first, 0 to 4
	Rate  engine.Rate   // of each key: a whole number of tokens in a whole number of microseconds
	Burst uint64        // tokens of a full bucket, 1 to 1,000,000,000
	Load  float64       // tokens requested of the first key, as a multiple of Rate, above 0 and at most 1000
	Time  time.Duration // how long the run lasts, 1 ms to 24 h

	// Traffic contains each node's part of the traffic, in any unit; nil means equal parts. For example, 90, 5, 3, 2
	// stands for four nodes of which one is busy.
	Traffic []float64

	// Costs are the costs of requests, in tokens, each equally often; nil means 1.
	Costs []uint64

	RTT       time.Duration // the mean round trip to the store, 0 to 1 s
	Jitter    time.Duration // round trips are evenly distributed over RTT ± Jitter; at most RTT
	Loss      float64       // the part of replies that is lost, 0 to less than 1
	Away      Span          // when the store cannot be reached; the zero Span means never
	AwayEvery time.Duration // the period at which Away repeats; 0 if Away occurs once
	CutOff    int           // how many nodes, from the first, cannot reach the store in the time Away; 0 means all
	Timeout   time.Duration // how long a node waits for a reply, 1 ms to 10 s; a call gets nine tenths of it

	// Partitions is the number of parts of the store that can fail independently: 1 to 4,096; 0 means 1. A call carries
	// questions to only one part.
	Partitions     int
	AwayPartitions int // how many partitions, from the first, cannot be reached in the time Away; 0 means all

	Skew      time.Duration // last node's clock minus first node's, the others evenly in between; 0 to 1 h
	Overdraft uint64        // see redislimit.Overdraft
	Seed      uint64        // for the random numbers

	// OnLoss decides the requests that the store does not decide: FailShare or FailClosed.
	OnLoss redislimit.FailurePolicy

	Strategies []Strategy // in the order of the report
}

// A Span is an interval of simulated time. It includes From and excludes To.
type Span struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// Default returns the scenario with which others are compared.
func Default() Scenario {
	return Scenario{
		Nodes: defaults.Nodes, Keys: 1, Zipf: 1, Rate: engine.PerSecond(1000), Burst: 200, Load: 10, Time: 10 * time.Second,
		RTT: time.Millisecond, Timeout: defaults.Timeout, Overdraft: defaults.Overdraft, Seed: 1, Strategies: Strategies(),
	}
}

// Check returns an error that names the first field out of its range, or nil.
func (s *Scenario) Check() error {
	switch {
	case s.Nodes < 1 || s.Nodes > 10_000:
		return fmt.Errorf("sim: %d nodes: want 1 to 10000", s.Nodes)
	case s.Keys < 1 || s.Keys > 10_000_000:
		return fmt.Errorf("sim: %d keys: want 1 to 10000000", s.Keys)
	case !(s.Zipf >= 0 && s.Zipf <= 4):
		return fmt.Errorf("sim: Zipf exponent of %v: want 0 to 4", s.Zipf)
	case s.Burst < 1 || s.Burst > 1e9:
		return fmt.Errorf("sim: burst of %d tokens: want 1 to 1000000000", s.Burst)
	case !(s.Load > 0 && s.Load <= 1000):
		return fmt.Errorf("sim: load of %v times the limit: want more than 0, at most 1000", s.Load)
	case s.Time < time.Millisecond || s.Time > 24*time.Hour:
		return fmt.Errorf("sim: %v of simulated time: want 1ms to 24h", s.Time)
	case s.RTT < 0 || s.RTT > time.Second:
		return fmt.Errorf("sim: round trip of %v: want 0 to 1s", s.RTT)
	case s.Jitter < 0 || s.Jitter > s.RTT:
		return fmt.Errorf("sim: jitter of %v: want 0 to the round trip of %v", s.Jitter, s.RTT)
	case !(s.Loss >= 0 && s.Loss < 1):
		return fmt.Errorf("sim: loss of %v: want 0 to less than 1", s.Loss)
	case s.Timeout < time.Millisecond || s.Timeout > 10*time.Second:
		return fmt.Errorf("sim: timeout of %v: want 1ms to 10s", s.Timeout)
	case s.Partitions < 0 || s.Partitions > 4096:
		return fmt.Errorf("sim: %d partitions: want 0 to 4096", s.Partitions)
	case s.Nodes*s.partitions() > 1_000_000:
		return fmt.Errorf("sim: %d nodes with %d partitions: want 1000000 queues at most", s.Nodes, s.Partitions)
	case s.AwayPartitions < 0 || s.AwayPartitions > s.partitions() || s.AwayPartitions > 0 && s.Away == Span{}:
		return fmt.Errorf("sim: %d partitions that are away: want 0 to %d while the store is away", s.AwayPartitions, s.partitions())
	case s.Away != Span{} && (s.Away.From < 0 || s.Away.To <= s.Away.From || s.Away.To > s.Time):
		return fmt.Errorf("sim: a store that is away from %v to %v: want a span of the simulated %v",
			s.Away.From, s.Away.To, s.Time)
	case s.AwayEvery != 0 && (s.Away == Span{} || s.AwayEvery <= s.Away.To-s.Away.From):
		return fmt.Errorf("sim: a store that is away again every %v: want more than the %v that it is away",
			s.AwayEvery, s.Away.To-s.Away.From)
	case s.CutOff < 0 || s.CutOff > s.Nodes || s.CutOff > 0 && s.Away == Span{}:
		return fmt.Errorf("sim: %d nodes cut off: want 0 to %d while the store is away", s.CutOff, s.Nodes)
	case s.Skew < 0 || s.Skew > time.Hour:
		return fmt.Errorf("sim: clock skew of %v: want 0 to 1h", s.Skew)
	case s.OnLoss != redislimit.FailShare && s.OnLoss != redislimit.FailClosed:
		return fmt.Errorf("sim: nodes that fail %v admit everything without a store: want FailShare or FailClosed",
			s.OnLoss)
	case s.Costs != nil && len(s.Costs) == 0:
		return fmt.Errorf("sim: no costs: want one at least, or nil")
	case len(s.Costs) > 0 && (slices.Min(s.Costs) < 1 || slices.Max(s.Costs) > s.Burst):
		return fmt.Errorf("sim: costs of %d tokens: want 1 to the burst of %d", s.Costs, s.Burst)
	case len(s.Strategies) == 0:
		return fmt.Errorf("sim: no strategies")
	}
	if err := s.checkRate(); err != nil {
		return err
	}
	for _, strategy := range s.Strategies {
		if err := strategy.check(); err != nil {
			return err
		}
	}
	return s.checkTraffic()
}

// checkRate accepts only whole numbers of tokens and microseconds, because the ideal limit must be exact.
func (s *Scenario) checkRate() error {
	tokens, period := s.Rate.Tokens, s.Rate.Period
	if tokens < 1 || tokens > 1e6 || tokens != math.Trunc(tokens) {
		return fmt.Errorf("sim: rate of %v: want a whole number of tokens, 1 to 1000000; 0.5/s is 1/2s", s.Rate)
	}
	if period < time.Microsecond || period > 24*time.Hour || period%time.Microsecond != 0 {
		return fmt.Errorf("sim: rate of %v: want a period of whole microseconds, at most 24h", s.Rate)
	}
	return s.checkLimiter()
}

// checkLimiter returns the error that package redislimit returns for the limit.
func (s *Scenario) checkLimiter() error {
	options := []redislimit.Option{redislimit.Nodes(s.Nodes), redislimit.Overdraft(s.Overdraft)}
	if err := redislimit.Check("sim", s.policy(), options...); err != nil {
		text := strings.TrimPrefix(err.Error(), "redislimit: sim: ")
		return fmt.Errorf("sim: %s", strings.TrimPrefix(text, "redislimit: "))
	}
	return nil
}

func (s *Scenario) policy() engine.Policy { return engine.TokenBucket(s.Rate, s.Burst) }

func (s *Scenario) share() engine.Policy {
	share, err := shares.Of(s.policy(), float64(s.Nodes))
	if err != nil {
		panic(err) // impossible: a token bucket has shares
	}
	return share
}

// mustLimit returns the limit of a policy that [Scenario.Check] has accepted.
func mustLimit(p engine.Policy) *script.Limit {
	limit, err := script.NewLimit(p, script.Terms{})
	if err != nil {
		panic(err)
	}
	return limit
}

func (s *Scenario) checkTraffic() error {
	if s.Traffic == nil {
		return nil
	}
	if len(s.Traffic) != s.Nodes {
		return fmt.Errorf("sim: %d shares for %d nodes: want one for each, or none", len(s.Traffic), s.Nodes)
	}
	sum := 0.0
	for i, share := range s.Traffic {
		if !(share >= 0) || math.IsInf(share, 0) {
			return fmt.Errorf("sim: share %v of node %d: want 0 or more", share, i+1)
		}
		sum += share
	}
	if sum <= 0 || math.IsInf(sum, 0) {
		return fmt.Errorf("sim: the shares add up to %v: want more than 0", sum)
	}
	return nil
}

func (s *Scenario) perMicrosecond() float64 {
	return s.Rate.Tokens / float64(s.Rate.Period/time.Microsecond)
}
