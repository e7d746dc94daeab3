package sim

type event struct {
	at    int64  // ns since the start
	sent  int64  // when the call was sent
	order uint64 // orders events at the same time: first in, first out
	kind  uint8  // one of the strategy's kinds of events
	node  uint32
	key   uint32
	slot  uint32 // identifies the strategy's data about this event
}

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.order < other.order
}

// eventQueue is a binary heap with the earliest event first. The interface of container/heap would cause an allocation
// for each event.
type eventQueue struct {
	heap []event
	puts uint64
}

func (q *eventQueue) put(e event) {
	e.order = q.puts
	q.puts++
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = e
}

func (q *eventQueue) take() event {
	first := q.heap[0]
	end := len(q.heap) - 1
	last := q.heap[end]
	q.heap = q.heap[:end]
	i := 0
	for {
		child := 2*i + 1
		if child >= end {
			break
		}
		if child+1 < end && q.heap[child+1].before(&q.heap[child]) {
			child++
		}
		if !q.heap[child].before(&last) {
			break
		}
		q.heap[i] = q.heap[child]
		i = child
	}
	if end > 0 {
		q.heap[i] = last
	}
	return first
}
