package engine

import (
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkShared compares a shared limiter with one that is not shared. The file is in TMPDIR.
func BenchmarkShared(b *testing.B) {
	limiters := [2]*Limiter{roundLimiter(b), roundLimiter(b, Shared(filepath.Join(b.TempDir(), "table")))}
	for name, round := range map[string]func(*decider) bool{
		"Allow": (*decider).allow, "AllowKey": (*decider).allowKey, "Take": (*decider).take,
	} {
		for _, of := range []string{"one", "many"} {
			b.Run(name+"/"+of, func(b *testing.B) {
				var ways [2]way
				for i, l := range limiters {
					d := newDecider(l, of, 0)
					ways[i] = way{[2]string{"own", "shared"}[i], func() time.Duration {
						begin := time.Now()
						if !round(d) {
							b.Error("a request is refused")
						}
						took := time.Since(begin)
						d.at = (d.at + roundDecisions) % len(d.keys)
						return took
					}}
				}
				byTurns(b, ways[0], ways[1])
			})
		}
	}
}

// allow makes the decisions of a round, and reports whether all are admitted. Each kind of call has its own function,
// because a function pointer would hide a part of the difference.
func (d *decider) allow() bool {
	all := true
	for _, key := range d.keys[d.at : d.at+roundDecisions] {
		all = d.limiter.Allow(key) && all
	}
	return all
}

func (d *decider) allowKey() bool {
	all := true
	for _, k := range d.hashed[d.at : d.at+roundDecisions] {
		all = d.limiter.AllowKey(k) && all
	}
	return all
}

func (d *decider) take() bool {
	all := true
	for _, k := range d.hashed[d.at : d.at+roundDecisions] {
		all = d.limiter.TakeKey(k, 1).Allowed && all
	}
	return all
}

// BenchmarkSharedAttach measures how long New takes to attach to a table of a million keys.
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
