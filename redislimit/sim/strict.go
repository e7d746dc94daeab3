package sim

// strict asks the store about every request. A request whose answer is lost is refused, and the
// store has charged it.
type strict struct {
	*world
	refill  *refill
	buckets []bucket
}

func newStrict(w *world) *strict {
	return &strict{w, newRefill(w.scenario), make([]bucket, w.scenario.Keys)}
}

func (s *strict) arrive(node, key uint32) {
	s.queue.put(event{at: s.now + s.way(), node: node, key: key})
}

// happen is a request at the store, the only thing that happens.
func (s *strict) happen(e event) {
	s.called(e.key)
	if s.refill.take(&s.buckets[e.key], s.micros()) && !s.lost() {
		s.admit(e.key)
	}
}
