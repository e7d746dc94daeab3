package admin

import (
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/internal/stripe"
	"github.com/weir-go/weir/limits"
)

// numOutcomes is the number of values of [limits.Outcome]. They include NotTaken, which is never counted.
const numOutcomes = int(limits.Refunded) + 1

// countedOutcomes has the outcomes that are counted, in the order of the page.
var countedOutcomes = [...]limits.Outcome{
	limits.Allowed, limits.Refused, limits.ShadowRefused, limits.Failed, limits.Refunded,
}

// totals has the counts of one rule, by limits.Outcome.
type totals [numOutcomes]uint64

type counters struct{ stripes *stripe.Counters }

func (c *counters) add(o limits.Outcome) { c.stripes.Add(int(o)) }

func (c *counters) totals() totals {
	sums := c.stripes.Totals()
	return totals(sums[:numOutcomes])
}

// maxCounters bounds how many names are counted: current rules, and removed rules that a reload may bring back. Only
// very many reloads with new names can reach it, because the function prune forgets unused names.
const maxCounters = 1024

// A counterSet finds the counters of a rule by name. Readers take no lock: adding a name replaces the map.
type counterSet struct {
	current atomic.Pointer[map[string]*counters]
	mu      sync.Mutex // locked while a new map is made
}

func newCounterSet() *counterSet {
	s := &counterSet{}
	s.current.Store(&map[string]*counters{})
	return s
}

// get returns the counters of a name, or nil if there are too many names. Only a rule's first request takes the lock.
func (s *counterSet) get(name string) *counters {
	if c := (*s.current.Load())[name]; c != nil {
		return c
	}
	return s.insert(name)
}

func (s *counterSet) insert(name string) *counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := *s.current.Load()
	if c := before[name]; c != nil || len(before) >= maxCounters {
		return c
	}
	after := make(map[string]*counters, len(before)+1)
	for k, v := range before {
		after[k] = v
	}
	c := &counters{stripe.New()}
	after[name] = c
	s.current.Store(&after)
	return c
}

func (s *counterSet) prune(inUse map[string]bool) {
	if len(*s.current.Load()) < maxCounters/2 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	after := make(map[string]*counters, len(inUse))
	for k, v := range *s.current.Load() {
		if inUse[k] {
			after[k] = v
		}
	}
	s.current.Store(&after)
}
