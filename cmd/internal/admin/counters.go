package admin

import (
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/internal/stripe"
	"github.com/weir-go/weir/limits"
)

// outcomes is the number of outcomes. It includes the outcome NotTaken, although NotTaken is never counted.
const outcomes = int(limits.Refunded) + 1

// counted has the outcomes that are counted, in the order in which they are shown.
var counted = [...]limits.Outcome{
	limits.Allowed, limits.Refused, limits.ShadowRefused, limits.Failed, limits.Refunded,
}

// totals has the counts of one rule, indexed by limits.Outcome.
type totals [outcomes]uint64

// counters counts the outcomes of one rule.
type counters struct{ of *stripe.Counters }

func (c *counters) add(o limits.Outcome) { c.of.Add(int(o)) }

func (c *counters) totals() totals {
	all := c.of.Totals()
	return totals(all[:outcomes])
}

// maxCounters is the largest number of counted names. These are the names of the current rules, and the names of rules
// that a reload has removed and another reload may bring back. All names come from rule files, so this number is
// reached only after a very large number of reloads with new names. Before that, prune forgets the names that are not
// in use.
const maxCounters = 1024

// A counterSet finds the counters of a rule by its name. The map of counters is read without a lock, so it is never
// changed. To add a name, a new map replaces it.
type counterSet struct {
	current atomic.Pointer[map[string]*counters]
	grow    sync.Mutex // held while the new map is made
}

func newCounterSet() *counterSet {
	s := &counterSet{}
	s.current.Store(&map[string]*counters{})
	return s
}

// get returns the counters of a name; nil if there are too many names. Only the first request of a rule takes the lock.
func (s *counterSet) get(name string) *counters {
	if c := (*s.current.Load())[name]; c != nil {
		return c
	}
	return s.insert(name)
}

func (s *counterSet) insert(name string) *counters {
	s.grow.Lock()
	defer s.grow.Unlock()
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

// prune forgets the names that are not in use, if there are many of them.
func (s *counterSet) prune(inUse map[string]bool) {
	if len(*s.current.Load()) < maxCounters/2 {
		return
	}
	s.grow.Lock()
	defer s.grow.Unlock()
	after := make(map[string]*counters, len(inUse))
	for k, v := range *s.current.Load() {
		if inUse[k] {
			after[k] = v
		}
	}
	s.current.Store(&after)
}
