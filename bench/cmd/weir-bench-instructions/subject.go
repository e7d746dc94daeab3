//go:build linux && amd64

package main

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

type call struct {
	name   string
	make   func(i int)
	before func(i int) // prepares call i; may be nil
}

type subject string

const (
	all      subject = "all"
	oneLimit subject = "one limit" // only a decision about an HTTP request, with fewer repetitions and a small limiter
)

const repeats = 32

// counted returns how many calls of each kind are stepped through if none is interrupted.
func (s subject) counted() int {
	if s == oneLimit {
		return 3
	}
	return repeats
}

// keyCounts are the numbers of keys in the measured limiters. Each limiter has room for a million keys.
var keyCounts = []int{1, 1000, 1_000_000}

func (s subject) names() (names []string) {
	if s == oneLimit {
		return []string{"empty", "httplimit, 1 limit"}
	}
	for _, keys := range keyCounts {
		for _, name := range []string{"empty", "floor, TSC clock", "Allow", "Take", "AllowKey(KeyAddr)", "Allow, coarse clock",
			"AllowKey", "TakeKey", "TakeKey, quota", "TakeKey, tier", "TakeReceipt", "Hold", "Hold, quota", "Settle, less",
			"Settle, less, late", "Settle, more", "Refund", "Charge", "Release", "TakeKey, in flight", "TakeReceipt, in flight",
			"Release, in flight", "httplimit, 1 limit", "httplimit, 3 limits"} {
			names = append(names, fmt.Sprintf("%s\t%d", name, keys))
		}
	}
	return names
}

func (s subject) calls() (calls []call, err error) {
	empty := call{name: "empty", make: func(int) {}}
	if s == oneLimit {
		l, err := measure.Weir(&workload.Row{Name: "instructions", Keys: 1, Capacity: 1000, Requests: 1}, engine.ClockCoarse())
		if err != nil {
			return nil, err
		}
		calls, err = byRequest(l)
		if err != nil {
			return nil, err
		}
		return []call{empty, calls[0]}, nil
	}
	for _, keys := range keyCounts {
		more, err := callsOf(keys)
		if err != nil {
			return nil, err
		}
		calls = append(append(calls, empty), more...)
	}
	return calls, nil
}

func callsOf(keys int) (calls []call, err error) {
	row := workload.Row{Name: "instructions", Keys: keys, Capacity: 1_000_000, Requests: keys}
	texts, addrs := make([]string, keys), make([]netip.Addr, keys)
	for i := range keys {
		texts[i] = fmt.Sprintf("tenant-%d/user-%d", i%17, i)
		addrs[i] = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	}
	tsc, err := measure.Weir(&row, engine.ClockTSC())
	if err != nil {
		return nil, err
	}
	coarse, err := measure.Weir(&row, engine.ClockCoarse())
	if err != nil {
		return nil, err
	}
	quota, err := tsc.Quota(engine.TokenBucket(engine.PerSecond(1e9), 1e6))
	if err != nil {
		return nil, err
	}
	tiers, err := measure.Weir(&row, engine.ClockTSC(), engine.Tiers(engine.TokenBucket(engine.PerSecond(1e8), 1e6)))
	if err != nil {
		return nil, err
	}
	floor, _, err := measure.Open(&row, measure.FloorTSC, nil)
	if err != nil {
		return nil, err
	}
	bare := floor.(measure.Keyed).Limiter
	for i := range keys {
		tsc.Allow(texts[i])
		coarse.Allow(texts[i])
		tsc.AllowKey(tsc.KeyAddr(addrs[i]))
	}
	calls = append(calls,
		call{name: "floor", make: func(i int) { bare.Allow(texts[i*7919%keys]) }},
		call{name: "Allow", make: func(i int) { tsc.Allow(texts[i*7919%keys]) }},
		call{name: "Take", make: func(i int) { tsc.Take(texts[i*7919%keys], 1) }},
		call{name: "KeyAddr", make: func(i int) { tsc.AllowKey(tsc.KeyAddr(addrs[i*7919%keys])) }},
		call{name: "coarse", make: func(i int) { coarse.Allow(texts[i*7919%keys]) }})
	var hashed [repeats]engine.Key
	for i := range hashed {
		hashed[i] = tsc.Key(texts[i*7919%keys])
	}
	calls = append(calls, byKey(tsc, tiers, hashed, quota)...)
	entered, err := inFlight(&row, texts)
	if err != nil {
		return nil, err
	}
	calls = append(calls, entered...)
	requests, err := byRequest(tsc)
	if err != nil {
		return nil, err
	}
	calls = append(calls, requests...)
	return calls, nil
}

func byKey(l, tiers *engine.Limiter, keys [repeats]engine.Key, quota engine.Quota) []call {
	var hold engine.Receipt
	var entry engine.Receipt
	held := func(i int) { _, hold = l.Hold(keys[i], 2) }
	return []call{
		{name: "AllowKey", make: func(i int) { l.AllowKey(keys[i]) }},
		{name: "TakeKey", make: func(i int) { l.TakeKey(keys[i], 1) }},
		{name: "quota", make: func(i int) { l.TakeKey(keys[i].With(quota), 1) }},
		{name: "tier", make: func(i int) { tiers.TakeKey(keys[i].Tier(1), 1) }},
		{name: "TakeReceipt", make: func(i int) { l.TakeReceipt(keys[i], 1) }},
		{name: "Hold", make: func(i int) {
			_, h := l.Hold(keys[i], 1)
			_ = &h
		}},
		{name: "Hold, quota", make: func(i int) {
			_, h := l.Hold(keys[i].With(quota), 1)
			_ = &h
		}},
		{name: "less", make: func(int) { hold.Settle(1) }, before: held},
		{name: "less, late", make: func(int) { hold.Settle(1) }, before: func(i int) {
			held(i)
			l.TakeKey(keys[i], 1)
		}},
		{name: "more", make: func(int) { hold.Settle(3) }, before: held},
		{name: "Refund", make: func(i int) { l.Refund(keys[i], 1) }},
		{name: "Charge", make: func(i int) { l.Charge(keys[i], 1) }},
		{name: "Release", make: func(int) { entry.Release() }, before: func(i int) { _, entry = l.TakeReceipt(keys[i], 1) }},
	}
}

func inFlight(row *workload.Row, texts []string) ([]call, error) {
	l, err := engine.New(engine.Concurrency(1000, time.Minute), engine.MaxKeys(row.Capacity), engine.Prefault(), engine.ClockTSC())
	if err != nil {
		return nil, err
	}
	var keys [repeats]engine.Key
	for i := range keys {
		keys[i] = l.Key(texts[i*7919%len(texts)])
	}
	var entry engine.Receipt
	return []call{
		{name: "TakeKey", make: func(i int) { l.TakeKey(keys[i], 1) }},
		{name: "TakeReceipt", make: func(i int) { l.TakeReceipt(keys[i], 1) }},
		{name: "Release", make: func(int) { entry.Release() }, before: func(i int) { _, entry = l.TakeReceipt(keys[i], 1) }},
	}, nil
}

func byRequest(l *engine.Limiter) (all []call, err error) {
	r := httptest.NewRequest("GET", "/", nil)
	var list []httplimit.Limit
	for _, name := range []string{"a", "b", "c"} {
		list = append(list, httplimit.Limit{Name: name, Limiter: l})
		if name == "b" {
			continue
		}
		m, err := httplimit.New(list)
		if err != nil {
			return nil, err
		}
		all = append(all, call{name: "httplimit", make: func(int) { m.Decide(r) }})
	}
	return all, nil
}

// child runs in the second process. It makes each call between two breakpoints.
func child() error {
	runtime.LockOSThread()
	s := subject(os.Getenv(role))
	calls, err := s.calls()
	if err != nil {
		return err
	}
	runtime.GC()
	debug.SetGCPercent(-1)
	for _, c := range calls {
		if c.before == nil {
			c.before = func(int) {}
		}
		for i := range repeats {
			c.before(i)
			c.make(i) // does the work that is only done once
			c.before(i)
			runtime.Gosched() // starts a new time slice
			runtime.Breakpoint()
			c.make(i)
			runtime.Breakpoint()
		}
	}
	return nil
}
