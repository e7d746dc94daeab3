package admin

import "github.com/weir-go/weir/engine"

type identity struct {
	rule string
	key  engine.Key // the key without its tier or quota
	hash uint64     // if the rule is in a store: hash of the text, instead of key; else 0
}

// A keyLimit is the limit that decided about a key. The field key includes the tier or quota. The field policy is set
// if the key does not determine the policy.
type keyLimit struct {
	key    engine.Key
	policy engine.Policy
}

// An entry is a watched key. It was refused at most count times, and at least count-maxError times.
type entry struct {
	identity
	text     string   // the text of [Admin.storedText]; "" until it is known
	limit    keyLimit // the limit of its last refusal
	count    uint64
	maxError uint64 // the refusals in count that may belong to other keys
}

// A sketch finds the most frequent keys of a stream in bounded memory. It uses the Space-Saving algorithm (Metwally,
// Agrawal and El Abbadi, 2005). It watches m keys. A new key replaces the watched key with the smallest count, and
// begins with the count of that key. The new key cannot have occurred more often before.
//
// After n refusals:
//
//   - Every key with more than n/m refusals is watched, whatever else was in the stream.
//   - A count is at most n/m too high. The field maxError says by how much it may be too high.
//
// So a flood of new keys can raise the bound n/m, but it cannot replace a key with more than n/m refusals.
type sketch struct {
	capacity int
	entries  []entry // a heap, the smallest count first
	index    map[identity]int
	total    uint64 // refusals
}

func newSketch(capacity int) sketch {
	return sketch{capacity: capacity, entries: make([]entry, 0, capacity), index: make(map[identity]int, capacity)}
}

// add counts a key. While the sketch has room, it calls the function text at once. In a full sketch, it calls text only
// when a watched key comes again. So a key that comes once gets no text, because it is unlikely to be shown.
func (s *sketch) add(id identity, limit keyLimit, text func() string) {
	s.total++
	if i, isWatched := s.index[id]; isWatched {
		e := &s.entries[i]
		e.limit = limit
		e.count++
		if e.text == "" {
			e.text = text()
		}
		s.siftDown(i)
		return
	}
	if len(s.entries) < s.capacity {
		s.entries = append(s.entries, entry{identity: id, text: text(), limit: limit, count: 1})
		s.index[id] = len(s.entries) - 1
		s.siftUp(len(s.entries) - 1)
		return
	}
	smallest := &s.entries[0]
	delete(s.index, smallest.identity)
	*smallest = entry{identity: id, limit: limit, count: smallest.count + 1, maxError: smallest.count}
	s.index[id] = 0
	s.siftDown(0)
}

// floor returns how often an unwatched key may have been counted.
func (s *sketch) floor() uint64 {
	if len(s.entries) < s.capacity {
		return 0
	}
	return s.entries[0].count
}

func (s *sketch) clear() {
	clear(s.entries) // frees the texts
	s.entries = s.entries[:0]
	clear(s.index)
	s.total = 0
}

// The functions below are a heap that knows the index of each key. With container/heap, each step would need a call
// through an interface.

func (s *sketch) swap(i, j int) {
	s.entries[i], s.entries[j] = s.entries[j], s.entries[i]
	s.index[s.entries[i].identity], s.index[s.entries[j].identity] = i, j
}

func (s *sketch) siftUp(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if s.entries[parent].count <= s.entries[i].count {
			return
		}
		s.swap(i, parent)
		i = parent
	}
}

func (s *sketch) siftDown(i int) {
	for {
		smallest := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.entries); child++ {
			if s.entries[child].count < s.entries[smallest].count {
				smallest = child
			}
		}
		if smallest == i {
			return
		}
		s.swap(i, smallest)
		i = smallest
	}
}
