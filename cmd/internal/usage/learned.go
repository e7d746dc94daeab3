package usage

import (
	"math/bits"
	"sync"
)

const (
	maxModels = 64    // models of a rule; all other models share one entry
	minCosts  = 20    // fewest costs from which the usual cost is computed
	maxCosts  = 1_000 // at this number of costs, the counts of all costs are halved
)

// Learned has the costs of previous requests, by model. The zero Learned has none. It is safe for concurrent use.
type Learned struct {
	mu      sync.Mutex
	byModel map[string]*costs
}

// costs is a histogram of costs. It has four buckets between a power of two and the next one.
type costs struct {
	n       uint32
	buckets [4 * 64]uint32
}

// bucketOf returns the index of the bucket for a cost. limitOf returns the largest cost in a bucket.
func bucketOf(cost uint64) int {
	if cost < 4 {
		return int(cost)
	}
	e := bits.Len64(cost) - 3
	return 4*e + int(cost>>e&3) + 4
}

func limitOf(bucket int) uint64 {
	if bucket < 4 {
		return uint64(bucket)
	}
	e := bucket/4 - 1
	return (uint64(bucket%4)+5)<<e - 1
}

// Note adds the cost of a request. The server must have answered the request with a usage. So a client cannot use up
// the room for models by requests for models that do not exist.
func (l *Learned) Note(model string, cost uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byModel == nil {
		l.byModel = map[string]*costs{}
	}
	c := l.byModel[model]
	if c == nil {
		if len(l.byModel) >= maxModels {
			model = ""
		}
		if c = l.byModel[model]; c == nil {
			c = &costs{}
			l.byModel[model] = c
		}
	}
	c.buckets[bucketOf(cost)]++
	if c.n++; c.n >= maxCosts {
		c.n = 0
		for i := range c.buckets {
			c.buckets[i] /= 2
			c.n += c.buckets[i]
		}
	}
}

// Usual returns the usual cost of a request for a model: 1.2 times the 95th percentile of the costs so far. The result
// known is false until there are enough costs.
func (l *Learned) Usual(model string) (cost uint64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.byModel[model]
	if c == nil && len(l.byModel) >= maxModels {
		c = l.byModel[""]
	}
	if c == nil || c.n < minCosts {
		return 0, false
	}
	rank := c.n - c.n/20
	for i, n := range c.buckets {
		if rank <= n {
			cost = limitOf(i)
			return cost + cost/5, true
		}
		rank -= n
	}
	return 0, false
}
