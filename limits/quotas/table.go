// Package quotas has the limits of many keys, for [limits.Limit.Quota]. A [Table] maps a key to a policy. The table is
// read from a file or from a hash in Redis. For each key, these have the name of a plan, or numbers. A [Field] reads
// the limit that a request brings in a header.
package quotas

import (
	"errors"
	"hash/maphash"
	"math/bits"
	"unsafe"

	"github.com/weir-go/weir/engine"
)

// MaxKeys is the largest number of keys in a [Table].
const MaxKeys = 100_000_000

// A Table has the policy of each of its keys. It does not change, so any number of goroutines may use it.
//
// Instead of the keys, a Table stores hashes of 64 bits with a secret seed, so no one can predict which keys have the
// same hash. A key takes 16 bytes, and each different policy takes 56 bytes. By chance, a Table may find a key that it
// does not have. If a table has a million keys and a million other keys are looked up, the chance that any is found is
// about 1 in 18 million.
type Table struct {
	seed     maphash.Seed
	hashes   []uint64 // a hash is at the place that its value gives, or at the next free place; 0: free
	indices  []uint32 // for each hash, the index of its policy in policies
	policies []engine.Policy
	keys     int
	sum      uint64 // checksum of the keys with their policies, to compare two tables of a process
}

// Of returns the policy of a key. ok is false if the table does not have the key. Of does not allocate.
func (t *Table) Of(key string) (p engine.Policy, ok bool) {
	if t.keys == 0 {
		return p, false
	}
	i := t.place(t.hash(key))
	if t.hashes[i] == 0 {
		return p, false
	}
	return t.policies[t.indices[i]], true
}

// Len returns the number of keys.
func (t *Table) Len() int { return t.keys }

// Policies returns the number of different policies.
func (t *Table) Policies() int { return len(t.policies) }

// Bytes returns the memory that the table takes, without the overhead of the allocator.
func (t *Table) Bytes() uint64 {
	const hash, number, policy = 8, 4, uint64(unsafe.Sizeof(engine.Policy{}))
	return uint64(len(t.hashes))*(hash+number) + uint64(cap(t.policies))*policy
}

func (t *Table) hash(key string) uint64 { return max(maphash.String(t.seed, key), 1) }

// place returns the index in t.hashes at which the hash is stored, or the free index at which it would be stored.
func (t *Table) place(hash uint64) int {
	high, _ := bits.Mul64(hash, uint64(len(t.hashes)))
	i := int(high)
	for t.hashes[i] != hash && t.hashes[i] != 0 {
		if i++; i == len(t.hashes) {
			i = 0
		}
	}
	return i
}

// A builder gathers the keys of a table.
type builder struct {
	table    Table
	hashes   []uint64
	indices  []uint32
	indexOf  map[engine.Policy]uint32
	marks    []uint64 // marks of the policies, for the table's sum
	lastWins bool     // if a key occurs twice, its last policy counts; if lastWins is false, that is an error
}

var sumSeed = maphash.MakeSeed()

func newBuilder() *builder {
	return &builder{table: Table{seed: maphash.MakeSeed()}, indexOf: map[engine.Policy]uint32{}}
}

var errTooMany = errors.New("too many keys: want at most 100,000,000")

// add adds a key. If the key was added before, only build notices.
func (b *builder) add(key string, p engine.Policy) error {
	if len(b.hashes) == MaxKeys {
		return errTooMany
	}
	i, found := b.indexOf[p]
	if !found {
		i = uint32(len(b.table.policies))
		b.indexOf[p], b.table.policies = i, append(b.table.policies, p)
		b.marks = append(b.marks, maphash.Comparable(sumSeed, p)|1)
	}
	b.table.sum += maphash.String(sumSeed, key) * b.marks[i]
	b.hashes, b.indices = append(b.hashes, b.table.hash(key)), append(b.indices, i)
	return nil
}

// build makes the table. The result duplicate is -1. If a key was added twice, build instead returns the index of the
// second add.
func (b *builder) build() (t *Table, duplicate int) {
	table := b.table // a copy with exactly the needed capacity
	t = &table
	t.hashes = make([]uint64, len(b.hashes)+len(b.hashes)/3+1) // so that every search ends at a free place
	t.indices = make([]uint32, len(t.hashes))
	t.policies = append(make([]engine.Policy, 0, len(t.policies)), t.policies...)
	for i, hash := range b.hashes {
		place := t.place(hash)
		if t.hashes[place] == 0 {
			t.keys++
		} else if !b.lastWins {
			return nil, i
		}
		t.hashes[place], t.indices[place] = hash, b.indices[i]
	}
	return t, -1
}
