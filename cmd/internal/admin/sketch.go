package admin

import "github.com/weir-go/weir/engine"

type identity struct {
	rule string
	key  engine.Key // the key without its tier or quota
	hash uint64     // if the rule is in a store: hash of the text, instead of key; else 0
}

// An under is the limit that decided about a key. The field key includes the tier or quota. The field limit is set if
// the key does not determine the policy.
type under struct {
	key   engine.Key
	limit engine.Policy
}

// An entry is a watched key. It was seen at most count times, and at least count-missed times.
type entry struct {
	identity
	text   string // the text of [Admin.keptOf]; "" until it is known
	under  under  // the limit of its last refusal
	count  uint64
	missed uint64 // how many of count may belong to other keys
}

// A sketch finds the most frequent keys of a stream in bounded memory. It uses the Space-Saving algorithm (Metwally,
// Agrawal and El Abbadi, 2005). It watches m keys. A new key replaces the watched key with the least count, and begins
// with the count of that key. The new key cannot have occurred more often before.
//
// After n refusals:
//
//   - Every key with more than n/m refusals is watched, whatever else was in the stream.
//   - A count is at most n/m too high. The field missed says by how much it may be too high.
//
// So a flood of new keys can raise the bound n/m, but it cannot replace a key with more than n/m refusals.
type sketch struct {
	most    int
	entries []entry // a heap, the least count first
	where   map[identity]int
	seen    uint64
}

func newSketch(most int) sketch {
	return sketch{most: most, entries: make([]entry, 0, most), where: make(map[identity]int, most)}
}

// add counts a key. While the sketch has room, it calls the function text at once. In a full sketch, it calls text only
// when a watched key comes again. So a key that comes once gets no text, because it is unlikely to be shown.
func (s *sketch) add(id identity, by under, text func() string) {
	s.seen++
	if i, watched := s.where[id]; watched {
		e := &s.entries[i]
		e.under = by
		e.count++
		if e.text == "" {
			e.text = text()
		}
		s.down(i)
		return
	}
	if len(s.entries) < s.most {
		s.entries = append(s.entries, entry{identity: id, text: text(), under: by, count: 1})
		s.where[id] = len(s.entries) - 1
		s.up(len(s.entries) - 1)
		return
	}
	least := &s.entries[0]
	delete(s.where, least.identity)
	*least = entry{identity: id, under: by, count: least.count + 1, missed: least.count}
	s.where[id] = 0
	s.down(0)
}

// floor returns how often an unwatched key may have been counted.
func (s *sketch) floor() uint64 {
	if len(s.entries) < s.most {
		return 0
	}
	return s.entries[0].count
}

func (s *sketch) clear() {
	clear(s.entries) // frees the texts
	s.entries = s.entries[:0]
	clear(s.where)
	s.seen = 0
}

// The functions below are a heap that knows the index of each key. With container/heap, each step would need a call
// through an interface.

func (s *sketch) swap(i, j int) {
	s.entries[i], s.entries[j] = s.entries[j], s.entries[i]
	s.where[s.entries[i].identity], s.where[s.entries[j].identity] = i, j
}

func (s *sketch) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if s.entries[parent].count <= s.entries[i].count {
			return
		}
		s.swap(i, parent)
		i = parent
	}
}

func (s *sketch) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.entries); child++ {
			if s.entries[child].count < s.entries[least].count {
				least = child
			}
		}
		if least == i {
			return
		}
		s.swap(i, least)
		i = least
	}
}
