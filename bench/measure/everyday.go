package measure

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// everydayCalls contains functions that open subjects, by the name of the subject. Each subject makes a call of weir
// other than Allow that the everyday rows measure.
var everydayCalls = map[string]func(*workload.Row, *workload.Stream) (Decider, func(), error){
	WeirTake:   openTake,
	WeirAddr:   openAddr,
	WeirDecide: openDecide,
	WeirAll:    openAll,
	WeirTiers:  openTiers,
	WeirAt:     openAt,
}

// A call turns a function into a limiter, to measure calls other than Allow.
type call func(key string) bool

func (c call) Allow(key string) bool { return c(key) }

func openTake(r *workload.Row, _ *workload.Stream) (Decider, func(), error) {
	l, err := Weir(r, engine.ClockTSC())
	if err != nil {
		return nil, nil, err
	}
	return Keyed{call(func(key string) bool { return l.Take(key, 1).Allowed })}, closeAll(l), nil
}

func closeAll(limiters ...*engine.Limiter) func() {
	return func() {
		for _, l := range limiters {
			l.Close()
		}
	}
}

// openTiers opens a limiter with the clients in three tiers. Two of the tiers have higher limits than the policy.
func openTiers(r *workload.Row, _ *workload.Stream) (Decider, func(), error) {
	paying, partner := r.Limit(), r.Limit()
	if r.Draw != workload.Logged { // on a Logged row, the rate is already the highest possible
		paying.Tokens, partner.Tokens = 2*paying.Tokens, 10*partner.Tokens
	}
	paying.Burst, partner.Burst = 2*paying.Burst, 10*partner.Burst
	l, err := Weir(r, engine.ClockTSC(), engine.Tiers(policyOf(paying), policyOf(partner)))
	if err != nil {
		return nil, nil, err
	}
	return Keyed{call(func(key string) bool {
		return l.AllowKey(l.Key(key).Tier(int(key[len(key)-1]) % 3))
	})}, closeAll(l), nil
}

// openAll opens three limits that decide together: two for each client, and one for all clients.
func openAll(r *workload.Row, _ *workload.Stream) (Decider, func(), error) {
	second, err := Weir(r, engine.ClockTSC())
	if err != nil {
		return nil, nil, err
	}
	minute := peers.Limit{Tokens: 60 * r.Limit().Tokens, Per: time.Minute, Burst: 60 * r.Limit().Burst}
	perMinute, err := engine.New(policyOf(minute), engine.MaxKeys(r.Capacity), engine.Prefault(), engine.ClockTSC())
	if err != nil {
		second.Close()
		return nil, nil, err
	}
	everyone, err := engine.New(engine.TokenBucket(engine.PerSecond(1e9), 1e9), engine.MaxKeys(1000), engine.ClockTSC())
	if err != nil {
		closeAll(second, perMinute)()
		return nil, nil, err
	}
	everyoneKey := everyone.Key("")
	return Keyed{call(func(key string) bool {
		k := second.Key(key) // valid for every limiter of the process
		var answers [3]engine.Answer
		requests := [3]engine.Request{{Limiter: second, Key: k, N: 1}, {Limiter: perMinute, Key: k, N: 1}, {Limiter: everyone, Key: everyoneKey, N: 1}}
		allowed, err := engine.TakeAll(requests[:], answers[:])
		return err == nil && allowed
	})}, closeAll(second, perMinute, everyone), nil
}

// An addrDecider decides requests whose addresses were parsed before the measurement.
type addrDecider struct {
	limiter *engine.Limiter
	addrs   []netip.Addr
}

func openAddr(r *workload.Row, requests *workload.Stream) (Decider, func(), error) {
	a := &addrDecider{addrs: make([]netip.Addr, requests.Len())}
	for i := range a.addrs {
		var err error
		if a.addrs[i], err = netip.ParseAddr(requests.At(i)); err != nil {
			return nil, nil, fmt.Errorf("client %d: %w", i+1, err)
		}
	}
	var err error
	if a.limiter, err = Weir(r, engine.ClockTSC()); err != nil {
		return nil, nil, err
	}
	return a, closeAll(a.limiter), nil
}

// Decide implements Decider. The stream must be the one with which the subject was opened.
func (a *addrDecider) Decide(_ *workload.Stream, from, to int) (allowed int) {
	for _, addr := range a.addrs[from:to] {
		if a.limiter.AllowKey(a.limiter.KeyAddr(addr)) {
			allowed++
		}
	}
	return allowed
}

func (a *addrDecider) Before() Decider {
	return Keyed{call(func(key string) bool {
		addr, err := netip.ParseAddr(key)
		return err == nil && a.limiter.AllowKey(a.limiter.KeyAddr(addr))
	})}
}

// A middlewareDecider lets the middleware decide. It reuses one request object and changes only the address. A server's
// request is in a cache, too, because the server has just read it.
type middlewareDecider struct {
	middleware *httplimit.Middleware
	remote     *workload.Stream // addresses with ports, as net/http has them
	pool       sync.Pool        // of *http.Request
}

// port is appended to every address.
const port = ":40404"

func openDecide(r *workload.Row, requests *workload.Stream) (Decider, func(), error) {
	l, err := Weir(r, engine.ClockTSC())
	if err != nil {
		return nil, nil, err
	}
	m, err := httplimit.New([]httplimit.Limit{{Name: "client", Limiter: l}})
	if err != nil {
		l.Close()
		return nil, nil, err
	}
	return &middlewareDecider{m, requests.With(port), sync.Pool{New: func() any { return new(http.Request) }}}, closeAll(l), nil
}

// Decide implements Decider. The stream must be the one with which the subject was opened.
func (d *middlewareDecider) Decide(_ *workload.Stream, from, to int) (allowed int) {
	request := d.pool.Get().(*http.Request)
	defer d.pool.Put(request)
	for i := from; i < to; i++ {
		request.RemoteAddr = d.remote.At(i)
		result := d.middleware.Decide(request)
		if result.Allowed() {
			allowed++
		}
	}
	return allowed
}

func (d *middlewareDecider) Before() Decider {
	return Keyed{call(func(key string) bool {
		result := d.middleware.Decide(&http.Request{RemoteAddr: key + port})
		return result.Allowed()
	})}
}

// A timedDecider passes to the limiter the due time of each request. So only the limiter has a limit that is not sped
// up.
//
// All workers share one time, which the limiter's clock shows, because the limiter does not trust a caller far ahead of
// its clock. Each request advances the time by the mean interval. A worker takes the times of step requests at once.
type timedDecider struct {
	limiter   *engine.Limiter
	start     time.Time
	requested atomic.Int64
	clock     atomic.Int64 // nanoseconds since start, up to the end of the latest group of step requests
}

func openAt(r *workload.Row, _ *workload.Stream) (Decider, func(), error) {
	t := &timedDecider{start: time.Now()}
	var err error
	t.limiter, err = engine.New(policyOf(r.Unhurried()), engine.MaxKeys(r.Capacity), engine.Prefault(),
		engine.ClockFunc(func() time.Time { return t.at(time.Duration(t.clock.Load())) }))
	if err != nil {
		return nil, nil, err
	}
	return t, closeAll(t.limiter), nil
}

func (t *timedDecider) at(since time.Duration) time.Time { return t.start.Add(since) }

// The constant step is the number of requests whose times a worker takes at once. If the worker is suspended, at most
// step requests are late.
const step = 50

// Decide implements Decider.
func (t *timedDecider) Decide(s *workload.Stream, from, to int) (allowed int) {
	for ; from < to; from += step {
		allowed += t.decide(s, from, min(from+step, to))
	}
	return allowed
}

func (t *timedDecider) decide(s *workload.Stream, from, to int) (allowed int) {
	requested := t.requested.Add(int64(to-from)) - int64(to-from)
	laps, remainder := requested/int64(s.Len()), requested%int64(s.Len())
	now := time.Duration(laps)*s.Lap() + time.Duration(remainder)*s.Lap()/time.Duration(s.Len())
	start := t.at(now - s.Due(from))
	t.clock.Store(int64(now + s.Due(to-1) - s.Due(from)))
	for i := from; i < to; i++ {
		if t.limiter.TakeAt(t.limiter.Key(s.At(i)), 1, start.Add(s.Due(i))).Allowed {
			allowed++
		}
	}
	return allowed
}

func (t *timedDecider) Before() Decider {
	return Keyed{call(func(key string) bool { return t.limiter.TakeAt(t.limiter.Key(key), 1, t.start).Allowed })}
}
