package engine

import "fmt"

// batchAhead is how many keys a batch has on their way from memory at a time: about as many
// cache lines as a core can wait for at once, twice.
const batchAhead = 24

// TakeBatch takes n tokens from each of the keys in turn and puts the answers into
// decisions. It is faster than a loop of TakeKey: the clock is read once, and the keys' cache
// lines come from memory at the same time. A key may occur more than once. The error is for
// fewer decisions than keys; then nothing is taken.
func (l *Limiter) TakeBatch(keys []Key, n uint64, decisions []Decision) error {
	l.requireMade()
	if len(decisions) < len(keys) {
		return fmt.Errorf("engine: TakeBatch: %d keys and room for %d decisions", len(keys), len(decisions))
	}
	nanos := l.clock.surely()
	for len(keys) > 0 {
		part := keys[:min(batchAhead, len(keys))]
		for _, k := range part {
			l.table.Find(k.hash).Touch()
		}
		for i, k := range part {
			decisions[i] = Decision{}
			l.takeAt(&decisions[i], k, n, nanos, nanos)
		}
		keys, decisions = keys[len(part):], decisions[len(part):]
	}
	return nil
}
