package engine

import "fmt"

// batchAhead is the number of keys whose cache lines [Limiter.TakeBatch] loads together. A core can wait for about half
// as many cache lines at the same time.
const batchAhead = 24

// TakeBatch takes n tokens from each of the keys, one after the other, and writes the answers to decisions. It is
// faster than a loop of TakeKey, because it reads the clock once and loads several cache lines at the same time. A key
// may occur more than once. If decisions is shorter than keys, TakeBatch returns an error and takes nothing.
func (l *Limiter) TakeBatch(keys []Key, n uint64, decisions []Decision) error {
	l.requireMade()
	if len(decisions) < len(keys) {
		return fmt.Errorf("engine: TakeBatch: %d keys and room for %d decisions", len(keys), len(decisions))
	}
	nanos := l.clock.exactNanos()
	for len(keys) > 0 {
		part := keys[:min(batchAhead, len(keys))]
		for _, k := range part {
			l.table.Find(k.hash).Touch()
		}
		for i, k := range part {
			l.takeAt(&decisions[i], k, n, nanos, nanos)
		}
		keys, decisions = keys[len(part):], decisions[len(part):]
	}
	return nil
}
