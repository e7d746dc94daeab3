package experiment

import (
	"runtime"
	"time"

	"github.com/weir-go/weir/engine"
)

// An Allocated contains the allocations of one kind of call.
type Allocated struct {
	Name   string  `json:"name"`
	Allocs float64 `json:"allocs"` // objects per call
}

// MeasureCalls counts the allocations of each kind of call that decides, for known and new keys, and for admitted and
// refused requests.
func MeasureCalls(struct{}) ([]Allocated, error) {
	l, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 100), engine.MaxKeys(1000))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	texts := []string{"a", "tenant-3/user-00000042", "198.51.100.7:43210"}
	keys, decisions := make([]engine.Key, len(texts)), make([]engine.Decision, len(texts))
	for i, text := range texts {
		keys[i] = l.Key(text)
	}
	next := uint64(0)
	var all []Allocated
	for _, call := range []struct {
		name string
		do   func(i int)
	}{
		{"Allow", func(i int) { l.Allow(texts[i%3]) }},
		{"AllowKey, new keys", func(int) { next++; l.AllowKey(l.KeyUint64(next)) }},
		{"Take", func(i int) { l.Take(texts[i%3], 2) }},
		{"TakeKey", func(i int) { l.TakeKey(keys[i%3], 1) }},
		{"TakeBatch", func(int) { err = l.TakeBatch(keys, 1, decisions) }},
		{"Peek", func(i int) { l.Peek(l.Key(texts[i%3]), 1) }},
	} {
		const calls = 20_000
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range calls {
			call.do(i)
		}
		runtime.ReadMemStats(&after)
		if err != nil {
			return nil, err
		}
		all = append(all, Allocated{Name: call.name, Allocs: float64(after.Mallocs-before.Mallocs) / calls})
	}
	return all, nil
}
