package suggest

import (
	"fmt"
	"math/bits"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/cmd/internal/trace"
	"github.com/weir-go/weir/engine"
)

type candidate struct {
	point     *Point
	bound     bound
	algorithm atomicbucket.Algorithm
	bucket    *atomicbucket.TokenBucket // the algorithm, if it is a token bucket
	quota     atomicbucket.Quota
	forget    int64 // time in nanoseconds after which any record is idle: see [atomicbucket.Algorithm]
}

func newCandidate(p *Point) (*candidate, error) {
	algorithm, err := algorithmOf(p.Policy)
	if err != nil {
		return nil, err
	}
	c := &candidate{point: p, bound: boundOf(p.Policy), algorithm: algorithm, quota: algorithm.Quota(),
		forget: 3 * int64(algorithm.MaxSkew())}
	c.bucket, _ = algorithm.(*atomicbucket.TokenBucket)
	return c, nil
}

func algorithmOf(p engine.Policy) (atomicbucket.Algorithm, error) {
	n, window := p.Limit(), p.Window()
	switch p.Algorithm() {
	case engine.AlgorithmTokenBucket:
		a, err := atomicbucket.NewTokenBucket(p.Rate().Tokens, p.Rate().Period, n)
		return &a, err
	case engine.AlgorithmBatchRefill:
		a, err := atomicbucket.NewBatchBucket(uint64(p.Rate().Tokens), p.Rate().Period, n)
		return &a, err
	case engine.AlgorithmFixedWindow:
		a, err := atomicbucket.NewFixedWindow(n, n, window, p.IsAligned())
		return &a, err
	case engine.AlgorithmSlidingWindow:
		a, err := atomicbucket.NewSlidingWindow(n, n, window)
		return &a, err
	case engine.AlgorithmSlidingLog:
		a, err := atomicbucket.NewSlidingLog(n, n, window)
		return &a, err
	case engine.AlgorithmConcurrency, engine.NoAlgorithm:
	}
	return nil, fmt.Errorf("%v: this policy cannot be tried", p)
}

const (
	// maxCandidates is the largest number of candidates (limits) that are tried in one pass over the requests.
	maxCandidates = 64
	// maxWords is how many words of memory the records of a pass may take. If the pass has only one candidate, its
	// records may take more.
	maxWords = 4 << 20
)

// A record has the state of a key under a candidate, and the time of the last write. If this time is so long ago that
// the record must be idle, the record counts as empty.
type record struct {
	state   atomicbucket.State
	at      int64
	refused int64 // the last day on which the key was refused
}

// A pass tries several candidates together. For each, it has a record of every key that the candidate may refuse. Since
// there is room for all records, it needs only the engine's algorithms, not its table.
type pass struct {
	requests   *requests
	candidates []*candidate
	judges     []uint64 // for each key, a bit for each candidate that may refuse some of its requests
	first      []uint32 // for each key, the index of its first record; the records for its other candidates follow
	records    []record
	rings      []atomicbucket.Ring // rings of the records; none if no candidate has rings
	word       atomicbucket.Word   // for algorithms that change a record in place
}

// try counts the keys that each limit refuses. A key counts once for each day on which it is refused. try makes as few
// passes as the memory permits.
func (r *requests) try(points []Point) error {
	var candidates []*candidate
	for i := range points {
		c, err := newCandidate(&points[i])
		if err != nil {
			return err
		}
		candidates = append(candidates, c)
	}
	for len(candidates) > 0 {
		p := &pass{requests: r, judges: make([]uint64, len(r.totals)), first: make([]uint32, len(r.totals))}
		budget := maxWords
		for len(candidates) > 0 && len(p.candidates) < maxCandidates {
			words := p.keysOf(candidates[0]) * int(3+4*candidates[0].algorithm.RingSize())
			if len(p.candidates) > 0 && words > budget {
				break
			}
			budget -= words
			p.add(candidates[0])
			candidates = candidates[1:]
		}
		if err := p.run(); err != nil {
			return err
		}
	}
	return nil
}

// keysOf returns the number of keys that a candidate may refuse.
func (p *pass) keysOf(c *candidate) (n int) {
	for key := range p.judges {
		if p.requests.peaks.mayRefuse(c.bound, key) {
			n++
		}
	}
	return n
}

func (p *pass) add(c *candidate) {
	bit := uint64(1) << len(p.candidates)
	p.candidates = append(p.candidates, c)
	for key := range p.judges {
		if p.requests.peaks.mayRefuse(c.bound, key) {
			p.judges[key] |= bit
		}
	}
}

func (p *pass) run() error {
	n := uint32(0)
	for key, judges := range p.judges {
		p.first[key] = n
		n += uint32(bits.OnesCount64(judges))
	}
	p.records = make([]record, n)
	for _, c := range p.candidates {
		if c.algorithm.RingSize() > 0 {
			p.rings = make([]atomicbucket.Ring, n)
		}
	}
	return p.requests.forEach(p.request)
}

// request passes the request q to each candidate that may refuse its key.
func (p *pass) request(q *trace.Request) bool {
	index, day := p.first[q.Key], dayOf(q)
	for judges := p.judges[q.Key]; judges != 0; judges &= judges - 1 {
		c := p.candidates[bits.TrailingZeros64(judges)]
		if r := &p.records[index]; !p.take(c, index, q) && r.refused != day {
			r.refused = day
			c.point.Refused++
		}
		index++
	}
	return true
}

// take takes the cost of a request from a candidate. If the answer of the request was refunded, take gives the cost
// back.
func (p *pass) take(c *candidate, index uint32, q *trace.Request) bool {
	if q.Cost > c.quota.Tokens {
		return false
	}
	r, demand := &p.records[index], c.quota.Demand(q.Cost)
	fresh := r.state == 0 || q.UnixNano-r.at > c.forget
	if b := c.bucket; b != nil && !q.Refund { // does the same as the code below, but these calls are inlined
		now := b.Ticks(q.UnixNano)
		if fresh {
			r.state = liveState(b.Full(now))
		}
		payload, ok := b.Take(r.state.Record(), now, demand)
		if ok {
			r.state, r.at = liveState(payload), q.UnixNano
		}
		return ok
	}
	now := c.algorithm.Ticks(q.UnixNano)
	if fresh {
		r.state = liveState(c.algorithm.Full(now))
		p.clear(c, index, r.state)
	}
	record := p.record(index)
	payload, ok := c.algorithm.Take(record, now, demand)
	if !ok {
		return false
	}
	if record.Ring != nil {
		c.algorithm.Flush(record, now, p.set(record.State))
	}
	if record.State = liveState(payload); q.Refund {
		after, _ := c.algorithm.Refund(record, atomicbucket.Return{Now: now, Latest: now, Demand: demand}, p.set(record.State))
		record.State = liveState(after.Payload())
	}
	r.state, r.at = record.State, q.UnixNano
	return true
}

// clear empties the ring of a new record, if its algorithm has rings.
func (p *pass) clear(c *candidate, index uint32, s atomicbucket.State) {
	if c.algorithm.RingSize() == 0 {
		return
	}
	if p.rings[index] == nil {
		p.rings[index] = make(atomicbucket.Ring, c.algorithm.RingSize())
	}
	p.rings[index].Clear(s)
}

func (p *pass) record(index uint32) atomicbucket.Record {
	r := p.records[index].state.Record()
	if p.rings != nil {
		r.Ring = p.rings[index]
	}
	return r
}

// version is the version of every state. The engine increments versions for concurrent changes of a record. Here, such
// changes do not occur.
const version = 1

func liveState(payload uint64) atomicbucket.State {
	return atomicbucket.NewState(atomicbucket.Live, version, payload)
}

// set makes the word contain a state, as the engine does when it changes a slot.
func (p *pass) set(s atomicbucket.State) *atomicbucket.Word {
	p.word = atomicbucket.Word{}
	claimed, _ := p.word.Claim(0, 0)
	p.word.Commit(p.word.Publish(claimed), atomicbucket.Live, s.Payload())
	return &p.word
}
