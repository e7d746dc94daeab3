package measure

import (
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// batchSize is how many requests a batch has.
const batchSize = 250

// batch decides requests with hashed keys, one at a time or in batches.
type batch struct {
	limiter *engine.Limiter
	keys    []engine.Key
	batched bool
}

func openBatch(r *workload.Row, batched bool, requests *workload.Stream) (Decider, func(), error) {
	l, err := Weir(r, engine.ClockTSC())
	if err != nil {
		return nil, nil, err
	}
	b := &batch{l, make([]engine.Key, requests.Len()), batched}
	for i := range b.keys {
		b.keys[i] = l.Key(requests.At(i))
	}
	return b, func() { l.Close() }, nil
}

// Decide implements Decider. The stream must be the one with which the batch was opened.
func (b *batch) Decide(_ *workload.Stream, from, to int) (allowed int) {
	var decisions [batchSize]engine.Decision
	for from < to {
		keys := b.keys[from:min(from+batchSize, to)]
		from += len(keys)
		if b.batched {
			if err := b.limiter.TakeBatch(keys, 1, decisions[:len(keys)]); err != nil {
				return allowed // too few, so the row fails
			}
		} else {
			for i, k := range keys {
				decisions[i] = b.limiter.TakeKey(k, 1)
			}
		}
		for i := range keys {
			if decisions[i].Allowed {
				allowed++
			}
		}
	}
	return allowed
}

// Before returns the decider for the time before the measurement, when each key makes one request.
func (b *batch) Before() Decider { return Keyed{Limiter: b.limiter} }
