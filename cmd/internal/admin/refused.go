package admin

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/weir-go/weir/engine"
)

const (
	windows        = 6  // windows of windowTicks seconds, which together cover the last minute
	windowTicks    = 10 // seconds
	sketchShards   = 16
	sketchCapacity = 64 // keys that are watched per window and shard
	topKeys        = 10 // keys that are shown
	maxText        = 256
)

// refusals finds the most refused keys of the last minute. It counts in windows of ten seconds: five complete windows
// and the current window. The keys are distributed over shards by a hash with a secret seed. A shard is locked for tens
// of nanoseconds.
//
// Every refusal counts, so the bounds of [sketch] apply to each shard and window. At most 6,144 keys are stored, with
// texts of at most 256 bytes.
type refusals struct {
	seed   maphash.Seed
	shards [sketchShards]refusalShard
}

type refusalShard struct {
	mu      sync.Mutex
	current int // index of the current window
	windows [windows]sketch
	_       [64]byte // so that the next shard's lock is on another cache line
}

func newRefusals() *refusals {
	r := &refusals{seed: maphash.MakeSeed()}
	for i := range r.shards {
		for w := range r.shards[i].windows {
			r.shards[i].windows[w] = newSketch(sketchCapacity)
		}
	}
	return r
}

func (r *refusals) add(id identity, limit keyLimit, text func() string) {
	s := &r.shards[maphash.Comparable(r.seed, id)%sketchShards]
	s.mu.Lock()
	defer s.mu.Unlock() // deferred because text calls a key function, which may panic
	s.windows[s.current].add(id, limit, text)
}

// rotate begins the next window and forgets the oldest.
func (r *refusals) rotate() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		s.current = (s.current + 1) % windows
		s.windows[s.current].clear()
		s.mu.Unlock()
	}
}

// A refusedKey is a key with a lower and an upper bound on how often it was refused.
type refusedKey struct {
	identity
	text         string
	lower, upper uint64
}

// A refusedClient is one key with all rules that refused it, the rule with the most refusals first.
type refusedClient struct {
	hash         uint64
	keys         []refusedKey
	lower, upper uint64
}

// top returns the n clients with the largest lower bounds on their refusals, and the number of all refusals.
func (r *refusals) top(n int) (clients []refusedClient, total uint64) {
	var keys []refusedKey
	for i := range r.shards {
		shardKeys, shardTotal := r.shards[i].merge()
		keys, total = append(keys, shardKeys...), total+shardTotal
	}
	slices.SortFunc(keys, func(a, b refusedKey) int {
		return cmp.Or(cmp.Compare(b.lower, a.lower), cmp.Compare(b.upper, a.upper), cmp.Compare(a.rule, b.rule))
	})
	index := map[uint64]int{}
	for _, k := range keys {
		hash := r.hash(k.identity)
		i, ok := index[hash]
		if !ok {
			i = len(clients)
			index[hash], clients = i, append(clients, refusedClient{hash: hash})
		}
		c := &clients[i]
		c.keys, c.lower, c.upper = append(c.keys, k), c.lower+k.lower, c.upper+k.upper
	}
	slices.SortFunc(clients, func(a, b refusedClient) int {
		return cmp.Or(cmp.Compare(b.lower, a.lower), cmp.Compare(b.upper, a.upper), cmp.Compare(a.keys[0].rule, b.keys[0].rule),
			cmp.Compare(a.hash, b.hash))
	})
	return clients[:min(n, len(clients))], total
}

// merge adds up the windows. A window that does not watch a key may still have counted it, at most as often as floor
// returns. So the upper bound of the key grows by this number.
func (s *refusalShard) merge() (keys []refusedKey, total uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	floors, merged := uint64(0), map[identity]*refusedKey{}
	for w := range s.windows {
		floors += s.windows[w].floor()
		total += s.windows[w].total
	}
	for w := range s.windows {
		floor := s.windows[w].floor()
		for _, e := range s.windows[w].entries {
			k := merged[e.identity]
			if k == nil {
				k = &refusedKey{identity: e.identity, upper: floors}
				merged[e.identity] = k
			}
			k.lower += e.count - e.maxError
			k.upper += e.count - floor
			k.text = cmp.Or(k.text, e.text)
		}
	}
	for _, k := range merged {
		keys = append(keys, *k)
	}
	return keys, total
}

// hash returns the hash by which a key is shown. It is the same under all rules until the process ends. The seeds are
// secret.
func (r *refusals) hash(id identity) uint64 {
	if id.hash != 0 {
		return id.hash
	}
	return maphash.Comparable(r.seed, id.key)
}

// storedIdentity returns the identity of a key whose rule is in a store.
func (r *refusals) storedIdentity(rule, text string) identity {
	return identity{rule: rule, hash: max(maphash.String(r.seed, text), 1)}
}

func (r *refusals) identity(rule Rule, b Bucket) identity {
	if rule.Stored != nil {
		return r.storedIdentity(rule.Name, b.Text)
	}
	return identity{rule: rule.Name, key: b.Key.With(engine.Quota{})}
}

// find returns the entry of a rule's watched key with the hash. Its text is "" if unknown.
func (r *refusals) find(rule string, hash uint64) (e entry, found bool) {
	for i := range r.shards {
		if e, found = r.shards[i].find(func(id identity) bool { return id.rule == rule && r.hash(id) == hash }); found {
			return e, true
		}
	}
	return e, false
}

func (r *refusals) contains(rule string, hash uint64) bool {
	_, found := r.find(rule, hash)
	return found
}

func (s *refusalShard) find(match func(identity) bool) (e entry, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.windows { // oldest first
		for _, candidate := range s.windows[(s.current+1+w)%windows].entries {
			if match(candidate.identity) {
				e, found = entry{identity: candidate.identity, text: cmp.Or(e.text, candidate.text), limit: candidate.limit}, true
			}
		}
	}
	return e, found
}
