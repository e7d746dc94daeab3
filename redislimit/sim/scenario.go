package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/lease"
)

// A Scenario is what is simulated. All fields but Shares, Jitter, Loss, Away, Share, Skew and Overdraft must be
// set; [Default] has a value for each.
type Scenario struct {
	Nodes int           // machines that share the limit, 1 to 10,000
	Keys  int           // 1 to 10,000,000; each has the limit for itself
	Zipf  float64       // the k-th key is asked for k^-Zipf times as often as the first, 0 to 4
	Rate  engine.Rate   // of each key: a whole number of tokens in a whole number of microseconds
	Burst uint64        // tokens of a full bucket, 1 to 1,000,000,000
	Load  float64       // what is offered to the first key, as a multiple of Rate, above 0 and at most 1000
	Time  time.Duration // how long, 1 ms to 24 h

	// Shares are the parts of the traffic that the nodes get, in any unit and none of them negative: as many as
	// there are nodes, or nil for even ones. 90, 5, 3, 2 is one busy node of four.
	Shares []float64

	RTT       time.Duration // the mean round trip to the store, 0 to 1 s
	Jitter    time.Duration // round trips last RTT ± Jitter, evenly; at most RTT
	Loss      float64       // the part of replies that is lost, 0 to less than 1
	Away      Span          // when the store cannot be reached; none if it is the zero Span
	Share     bool          // a node admits its share of what the store fails to decide, else nothing of it
	Timeout   time.Duration // after which a node takes a reply for lost, more than RTT + Jitter
	Skew      time.Duration // between the clocks of the first and the last node, the others evenly between, 0 to 1 h
	Overdraft uint64        // tokens that a node may spend of a key before it has them, 0 to 16,383
	Seed      uint64        // of the random numbers

	Strategies []Strategy // in the order of the report
}

// A Span is from one simulated time to before another.
type Span struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// Default returns the scenario that the others are compared with: 4 nodes, one key, ten times the
// limit of 1000 a second, through a network of 1 ms, for 10 s.
func Default() Scenario {
	return Scenario{
		Nodes: 4, Keys: 1, Zipf: 1, Rate: engine.PerSecond(1000), Burst: 200, Load: 10, Time: 10 * time.Second,
		RTT: time.Millisecond, Timeout: 50 * time.Millisecond, Overdraft: 8, Seed: 1, Strategies: Strategies(),
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
	case s.Timeout <= s.RTT+s.Jitter || s.Timeout > time.Minute:
		return fmt.Errorf("sim: timeout of %v: want more than the longest round trip, %v, at most 1m", s.Timeout, s.RTT+s.Jitter)
	case s.Away != Span{} && (s.Away.From < 0 || s.Away.To <= s.Away.From || s.Away.To > s.Time):
		return fmt.Errorf("sim: a store that is away from %v to %v: want a span of the simulated %v", s.Away.From, s.Away.To, s.Time)
	case s.Skew < 0 || s.Skew > time.Hour:
		return fmt.Errorf("sim: clock skew of %v: want 0 to 1h", s.Skew)
	case s.Overdraft > lease.MaxDebt:
		return fmt.Errorf("sim: overdraft of %d tokens: want 0 to %d", s.Overdraft, lease.MaxDebt)
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
	return s.checkShares()
}

// checkRate wants the rate in whole numbers, so that the ideal is exact.
func (s *Scenario) checkRate() error {
	tokens, period := s.Rate.Tokens(), s.Rate.Period()
	if tokens < 1 || tokens > 1e6 || tokens != math.Trunc(tokens) {
		return fmt.Errorf("sim: rate of %v: want a whole number of tokens, 1 to 1000000; 0.5/s is 1/2s", s.Rate)
	}
	if period < time.Microsecond || period > 24*time.Hour || period%time.Microsecond != 0 {
		return fmt.Errorf("sim: rate of %v: want a period of whole microseconds, at most 24h", s.Rate)
	}
	const most = 1 << 51 // so that the buckets' numbers fit 63 bits
	if micros := uint64(period / time.Microsecond); s.Burst > most/micros {
		return fmt.Errorf("sim: burst of %d tokens at %v: want at most %d at that period", s.Burst, s.Rate, most/micros)
	}
	return nil
}

func (s *Scenario) checkShares() error {
	if s.Shares == nil {
		return nil
	}
	if len(s.Shares) != s.Nodes {
		return fmt.Errorf("sim: %d shares for %d nodes: want one for each, or none", len(s.Shares), s.Nodes)
	}
	sum := 0.0
	for i, share := range s.Shares {
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

// perMicrosecond is the rate in tokens.
func (s *Scenario) perMicrosecond() float64 {
	return s.Rate.Tokens() / float64(s.Rate.Period()/time.Microsecond)
}
