package sim

import (
	"math"
	"math/rand/v2"
)

// arrivals generates the requests as a Poisson process. The requests are the same for every strategy.
type arrivals struct {
	random      *rand.Rand
	nodes, keys *lottery
	costs       []uint64
	mean        float64 // ns between two requests
	at          float64 // in ns
}

func newArrivals(s *Scenario, nodes, keys *lottery) *arrivals {
	first := s.perMicrosecond() / 1000 * s.Load // tokens requested of the first key, per ns
	// The weight of the first key is 1.
	return &arrivals{
		random: rand.New(rand.NewPCG(s.Seed, 1)), nodes: nodes, keys: keys, costs: s.costs(),
		mean: s.meanCost() / (first * keys.total),
	}
}

// next returns the time of the next request in ns since the start, its node, its key, and its cost.
func (a *arrivals) next() (at int64, node, key uint32, cost uint64) {
	a.at += a.random.ExpFloat64() * a.mean
	node, key, cost = a.nodes.draw(a.random), a.keys.draw(a.random), a.costs[0]
	if len(a.costs) > 1 {
		cost = a.costs[a.random.IntN(len(a.costs))]
	}
	return int64(a.at), node, key, cost
}

func (s *Scenario) costs() []uint64 {
	if s.Costs == nil {
		return []uint64{1}
	}
	return s.Costs
}

func (s *Scenario) meanCost() float64 {
	sum := uint64(0)
	for _, cost := range s.costs() {
		sum += cost
	}
	return float64(sum) / float64(len(s.costs()))
}

func (s *Scenario) nodeWeights() []float64 {
	if s.Traffic != nil {
		return s.Traffic
	}
	weights := make([]float64, s.Nodes)
	for i := range weights {
		weights[i] = 1
	}
	return weights
}

func (s *Scenario) keyWeights() []float64 {
	weights := make([]float64, s.Keys)
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -s.Zipf)
	}
	return weights
}

// A lottery draws numbers by weight in constant time, by the alias method.
type lottery struct {
	threshold []float64 // the part of a box that belongs to its own number
	alias     []uint32  // the number to which the other part of the box belongs
	total     float64   // the sum of the weights
}

func newLottery(weights []float64) *lottery {
	n := len(weights)
	l := &lottery{threshold: make([]float64, n), alias: make([]uint32, n)}
	for _, w := range weights {
		l.total += w
	}
	var small, large []uint32
	for i, w := range weights {
		l.threshold[i] = w * float64(n) / l.total
		if l.threshold[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		poor, rich := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		l.alias[poor] = rich
		l.threshold[rich] -= 1 - l.threshold[poor]
		if l.threshold[rich] < 1 {
			large = large[:len(large)-1]
			small = append(small, rich)
		}
	}
	for _, i := range append(small, large...) { // full, apart from rounding
		l.threshold[i] = 1
	}
	return l
}

func (l *lottery) draw(random *rand.Rand) uint32 {
	i := uint32(random.Uint64N(uint64(len(l.threshold))))
	if random.Float64() < l.threshold[i] {
		return i
	}
	return l.alias[i]
}
