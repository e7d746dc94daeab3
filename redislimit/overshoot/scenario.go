package overshoot

import (
	"fmt"
	"time"
)

// A Scenario is load on one key with a token bucket.
type Scenario struct {
	Name    string   `json:"name"`
	Rate    float64  `json:"rate"`    // of the limit, per second
	Burst   uint64   `json:"burst"`   // of the limit
	Offered float64  `json:"offered"` // tokens per second that all nodes request in total
	Costs   []uint64 `json:"costs"`   // costs of a node's requests, one after the other in a loop; none means 1
	Differ  bool     `json:"differ"`  // nodes have different options, and half of them are strict

	Stall      time.Duration `json:"stall"`       // for how long the server cannot be reached
	StallEvery time.Duration `json:"stall_every"` // the time between two stalls
	CutOff     int           `json:"cut_off"`     // how many nodes cannot reach the server for half of the time

	Shares []float64     `json:"shares"` // each node's part of Offered; their sum is 1
	Time   time.Duration `json:"time"`   // how long the run lasts
}

// Even returns n equal shares.
func Even(n int) []float64 {
	shares := make([]float64, n)
	for i := range shares {
		shares[i] = 1 / float64(n)
	}
	return shares
}

// Scenarios returns the scenarios that are measured, each for the time t.
func Scenarios(t time.Duration) []Scenario {
	var scenarios []Scenario
	add := func(rate float64, burst uint64, factor float64, shares []float64, shape string) {
		scenarios = append(scenarios, Scenario{
			Name: fmt.Sprintf("%d nodes, %s, %gx of %g/s", len(shares), shape, factor, rate),
			Rate: rate, Burst: burst, Offered: factor * rate, Shares: shares, Time: t,
		})
	}
	uneven := []float64{0.90, 0.05, 0.03, 0.02}
	add(1000, 200, 0.8, Even(4), "even")
	add(1000, 200, 2, Even(4), "even")
	add(1000, 200, 10, Even(4), "even")
	add(1000, 200, 0.8, uneven, "90/5/3/2")
	add(1000, 200, 2, uneven, "90/5/3/2")
	add(1000, 200, 10, uneven, "90/5/3/2")
	add(500, 100, 1.6, Even(2), "even")
	add(1000, 200, 2, Even(2), "even")
	add(1000, 200, 2, Even(16), "even")
	add(1000, 200, 0.5, Even(4), "cost 5, even")
	scenarios[len(scenarios)-1].Costs = []uint64{5}
	add(1000, 200, 0.5, Even(4), "cost 60, even")
	scenarios[len(scenarios)-1].Costs = []uint64{60}
	add(1000, 200, 2, Even(4), "cost 60, even")
	scenarios[len(scenarios)-1].Costs = []uint64{60}
	add(1000, 200, 0.8, Even(4), "costs 1 and 60, even")
	scenarios[len(scenarios)-1].Costs = []uint64{1, 60}
	add(1000, 200, 2, Even(4), "unlike each other, even")
	scenarios[len(scenarios)-1].Differ = true
	add(1000, 200, 2, Even(4), "100 ms of each second out of reach, even")
	scenarios[len(scenarios)-1].Stall, scenarios[len(scenarios)-1].StallEvery = 100*time.Millisecond, time.Second
	add(1000, 200, 2, Even(4), "60 ms of each 120 ms out of reach, even")
	scenarios[len(scenarios)-1].Stall, scenarios[len(scenarios)-1].StallEvery = 60*time.Millisecond, 120*time.Millisecond
	add(1000, 200, 2, Even(4), "one cut off for half of the time, even")
	scenarios[len(scenarios)-1].CutOff = 1
	return scenarios
}

func (s Scenario) isDisturbed() bool { return s.Stall > 0 || s.CutOff > 0 }

// isPlain reports whether the scenario has only a load.
func (s Scenario) isPlain() bool { return len(s.Costs) == 0 && !s.Differ && !s.isDisturbed() }

// Ways returns the [Ways] for which the scenario is measured.
func (s Scenario) Ways() []string {
	if s.isPlain() {
		return Ways()
	}
	return Ways()[:2]
}

func (s Scenario) cost(i int) uint64 {
	if len(s.Costs) == 0 {
		return 1
	}
	return s.Costs[i%len(s.Costs)]
}

func (s Scenario) meanCost() float64 {
	sum := uint64(0)
	for i := range max(len(s.Costs), 1) {
		sum += s.cost(i)
	}
	return float64(sum) / float64(max(len(s.Costs), 1))
}

// Ways returns the ways of sharing a limit that are compared. They are the modes of package redislimit, and the hybrid
// that settles later. The hybrid has two forms, a level that drains and fixed windows of a second, and each form has
// three intervals.
func Ways() []string {
	return []string{
		"strict", "lease", "settle 10ms", "settle 50ms", "settle 200ms", "window 10ms", "window 50ms", "window 200ms",
	}
}
