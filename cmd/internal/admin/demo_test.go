package admin

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

// A demo has real limiters, simulated traffic, and a clock that the test moves.
type demo struct {
	admin   *Admin
	limited *httplimit.Middleware
	rules   []Rule
	now     atomic.Int64 // nanoseconds since 1970
	random  *rand.Rand

	answered, refused atomic.Uint64
}

// newDemo returns a demo. Its clock starts at a fixed time minus the duration ago.
func newDemo(t testing.TB, keys Keys, ago time.Duration, more ...func(*Config, *demo)) *demo {
	d := &demo{random: rand.New(rand.NewPCG(1, 2))}
	// The simulated traffic depends on this time. If the demo started at another time, another rule could have the most
	// requests.
	d.now.Store(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).Add(-ago).UnixNano())
	apiKey, err := httplimit.Header("X-API-Key", httplimit.RemoteIP)
	require.NoError(t, err)
	var list []httplimit.Limit
	add := func(name, path string, policy engine.Policy, maxKeys int, shadow bool, key httplimit.KeyFunc, parts []string,
		fill func(*http.Request, []string)) {
		l, err := engine.New(policy, engine.MaxKeys(maxKeys), engine.ClockFunc(d.time), engine.SweepInterval(time.Second))
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		list = append(list, httplimit.Limit{
			Name: name, Limiter: l, Key: key, Shadow: shadow,
			Match: func(r *http.Request) bool { return path == "" || r.URL.Path == path },
		})
		d.rules = append(d.rules, Rule{
			Name: name, Policy: policy.String(), Shadow: shadow, Limiter: l, Parts: parts,
			For: cmp.Or(path, "all requests"), By: strings.Join(parts, ", "),
			Buckets: Local(l, func(parts []string) engine.Key {
				r := httptest.NewRequest("GET", path+"/", nil)
				fill(r, parts)
				k, _ := key(limits.HasherOf(l), r)
				return k
			}),
		})
	}
	address := func(r *http.Request, parts []string) { r.RemoteAddr = parts[0] + ":1" }
	ip := []string{"ip"}
	add("api", "/api", engine.TokenBucket(engine.PerSecond(40), 80), 20_000, false, apiKey,
		[]string{"header:X-API-Key or ip"}, func(r *http.Request, parts []string) { r.Header.Set("X-API-Key", parts[0]) })
	add("login", "/login", engine.SlidingWindow(10, time.Minute), 5_000, false, httplimit.RemoteIP, ip, address)
	add("search by client and host", "/search", engine.TokenBucket(engine.PerSecond(4), 12), 10_000, false,
		httplimit.Join(httplimit.RemoteIP, httplimit.Host), []string{"ip", "host"},
		func(r *http.Request, parts []string) { address(r, parts); r.Host = parts[1] })
	add("everything", "", engine.FixedWindow(900, time.Minute), 50_000, true, httplimit.RemoteIP, ip, address)
	add("sign-up", "/sign-up", engine.TokenBucket(engine.Per(2, time.Minute), 2), 150, false, httplimit.RemoteIP, ip, address)
	add("export", "/export", engine.SlidingLog(5, time.Hour), 1_000, false, httplimit.RemoteIP, ip, address)

	c := Config{
		Rules: func() []Rule { return d.rules }, Keys: keys, Version: "v0.9.0", Requests: d.requests,
		Reloads: func() Reload { return Reload{At: time.Now().Add(-42 * time.Minute), OK: true, Generation: 3} },
	}
	for _, change := range more {
		change(&c, d)
	}
	d.admin, err = build(c)
	require.NoError(t, err)
	d.limited, err = httplimit.New(list, httplimit.ObserveWith(d.admin), httplimit.OnLimited(d.admin.Limited))
	require.NoError(t, err)
	return d
}

// requests reports fixed answer times of the admitted requests, and one failure in five hundred requests.
func (d *demo) requests() Requests {
	all, refused := d.answered.Load(), d.refused.Load()
	passed := all - refused
	return Requests{
		Answered: all, Refused: refused, Failures: passed / 500,
		Times: Times{[]float64{0.01, 0.02, 0.05, 0.2}, []uint64{0, passed / 2, passed / 20 * 19, passed, passed}},
	}
}

func (d *demo) time() time.Time { return time.Unix(0, d.now.Load()) }

func (d *demo) ask(path, address, apiKey string) {
	r := httptest.NewRequest(http.MethodGet, "http://shop.example.com"+path, nil)
	r.RemoteAddr = address + ":4711"
	if apiKey != "" {
		r.Header.Set("X-API-Key", apiKey)
	}
	result := d.limited.Decide(r)
	d.answered.Add(1)
	if !result.Allowed() {
		d.refused.Add(1)
		result.Refuse(httptest.NewRecorder(), r)
	}
}

// slice simulates a twentieth of a second: customers, a client that sends too much, a client that guesses passwords,
// and sometimes many sign-ups.
func (d *demo) slice() {
	d.now.Add(int64(time.Second / 20))
	s := float64(d.now.Load()/1e6) / 1e3
	chance := func(perSecond float64) int { return int(perSecond/20 + d.random.Float64()) }
	address := func(of int) string { return fmt.Sprintf("198.51.%d.%d", 100+d.random.IntN(of), d.random.IntN(250)) }
	for range chance(180 + 60*math.Sin(s/23) + 30*math.Sin(s/5)) {
		d.ask("/api", address(4), fmt.Sprintf("customer-%03d", d.random.IntN(300)))
	}
	for range chance(55 + 50*math.Sin(s/17)) {
		d.ask("/api", "203.0.113.9", "crawler-of-the-marketing-department")
	}
	for range chance(1.5) {
		d.ask("/login", address(4), "")
	}
	for range chance(3 + 3*math.Sin(s/31)) {
		d.ask("/login", "203.0.113.66", "")
	}
	for range chance(20 + 8*math.Sin(s/11)) {
		d.ask("/search", address(1), "")
	}
	for range chance(9 + 8*math.Sin(s/13)) {
		d.ask("/search", "192.0.2.44", "")
	}
	for range chance(6 + 9*max(0, math.Sin(s/40))) {
		d.ask("/sign-up", address(8), "")
	}
}

func (d *demo) fill() {
	for range points {
		d.second()
	}
	for _, r := range d.rules {
		r.Limiter.Sweep()
	}
}

// run starts the Admin. Only the functions second and tick advance its time.
func (d *demo) run(t testing.TB) {
	if d.admin.history.seq == 0 {
		d.admin.tick(d.time())
	}
	go d.admin.run(nil)
	t.Cleanup(func() { d.admin.Close() })
}

func (d *demo) second() {
	for range 20 {
		d.slice()
	}
	d.tick()
}

// tick ends a second of the Admin, which gets all requests so far. The clock of the limiters does not move.
func (d *demo) tick() { d.admin.tick(d.time()) }
