package engine

import (
	"path/filepath"
	"strconv"
	"testing"
)

// BenchmarkShared is what a decision costs in a limiter of one process and in one that is shared, for one key and for a
// hundred thousand. The file lies in TMPDIR.
func BenchmarkShared(b *testing.B) {
	for name, options := range map[string][]Option{
		"own": nil, "shared": {Shared(filepath.Join(b.TempDir(), "table"))},
	} {
		l, err := New(TokenBucket(PerSecond(1e9), 1<<32-1), append(options, MaxKeys(200_000))...)
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		texts := make([]string, 100_000)
		for i := range texts {
			texts[i] = "192.168." + strconv.Itoa(i)
			l.Allow(texts[i])
		}
		b.Run("Allow/"+name, func(b *testing.B) {
			for b.Loop() {
				l.Allow("192.168.100.200")
			}
		})
		b.Run("AllowMany/"+name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				if i++; i == len(texts) {
					i = 0
				}
				l.Allow(texts[i])
			}
		})
		k := l.Key("192.168.100.200")
		b.Run("AllowKey/"+name, func(b *testing.B) {
			for b.Loop() {
				l.AllowKey(k)
			}
		})
		b.Run("Take/"+name, func(b *testing.B) {
			for b.Loop() {
				l.TakeKey(k, 1)
			}
		})
	}
}

// BenchmarkSharedAttach is how long New takes to attach to a table of a million keys. (The sweeper that it starts is
// closed, and the memory is given back when the limiter is collected.)
func BenchmarkSharedAttach(b *testing.B) {
	path := Shared(filepath.Join(b.TempDir(), "table"))
	for b.Loop() {
		l, err := New(TokenBucket(PerSecond(1), 10), path, MaxKeys(1_000_000))
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
