package sim

import "github.com/weir-go/weir/redislimit/internal/script"

// strict asks the store about every request. A request whose answer is lost is up to the node's
// share, and the store has charged it.
type strict struct {
	*post
	refill  *refill
	buckets []bucket
	shares  *shares
}

func newStrict(w *world) *strict {
	s := &strict{refill: newRefill(w.scenario), buckets: make([]bucket, w.scenario.Keys), shares: newShares(w)}
	s.post = newPost(w, func(_ uint32, q *question) { s.decide(s.refill, s.buckets, q) }, s.answered)
	return s
}

func (s *strict) arrive(node, key uint32) {
	if !s.put(node, question{key: key}) {
		s.shares.arrive(node, key)
	}
}

func (s *strict) answered(node uint32, q *question) {
	switch {
	case q.what == shareSettlement:
		s.shares.settled(node, q)
	case q.failed:
		s.shares.arrive(node, q.key)
	default:
		s.shares.settle(s.post, node, q.key)
	}
}

// decide has the store decide about a request. Who waits for an answer gives up when the timeout is over,
// however long of that the question did not travel.
func (p *post) decide(r *refill, buckets []bucket, q *question) {
	if q.what == shareSettlement {
		r.ask(&buckets[q.key], p.micros(), script.Ask{Debt: q.debt})
		return
	}
	if p.now-q.since > int64(p.scenario.Timeout) {
		q.failed = true
	}
	if r.take(&buckets[q.key], p.micros()) && !q.failed {
		p.admit(q.key)
	}
}
