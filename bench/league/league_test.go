// Package league tests the limiters of the benchmark with package limitertest: the promises of each library and the
// findings of the audit. make audit prints the results as a table.
package league

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limitertest"
)

type entry struct {
	name, module string
	promise      limitertest.Promise
	says         string // what its documentation promises
	config       limitertest.Config
}

// peer returns the entry for the benchmark's limiter with that name. The list skip has what the library, by its
// documentation, does not do.
func peer(name, says string, promise limitertest.Promise, skip map[string]string) entry {
	for _, p := range peers.All() {
		if p.Name != name {
			continue
		}
		skips := map[string]string{"Costs": "the benchmark's adapter asks for one token at a time"}
		for part, reason := range skip {
			skips[part] = reason
		}
		if why := p.Cannot[peers.Keys]; why != "" {
			for _, part := range []string{"Burst", "Keys", "Forget", "Linear", "Leak"} {
				skips[part] = why
			}
		}
		if why := p.Cannot[peers.Bound]; why != "" {
			skips["Leak"] = why
		}
		return entry{name, p.Module, promise, says, limitertest.Config{
			Promise: promise, Keys: 1000, Skip: skips,
			New: func(_ testing.TB, l limitertest.Limit) limitertest.Limiter {
				made, err := p.New(peers.Limit{Tokens: int(l.Tokens), Per: l.Per, Burst: int(l.Burst)}, 1000)
				if err != nil {
					return nil
				}
				return limitertest.TakeFunc(func(key string, _ int64) limitertest.Decision {
					return limitertest.Decision{Allowed: made.Allow(key), RetryAfter: -1}
				})
			},
		}}
	}
	panic("no peer " + name)
}

// The method rounds allows an error of a microsecond, for floating point and rounding to nanoseconds.
func (e entry) rounds() entry {
	e.config.EarlyBy = func(limitertest.Limit) time.Duration { return time.Microsecond }
	e.config.LateBy = e.config.EarlyBy
	return e
}

// The method longer shortens the period by one nanosecond. It is for a library whose windows are a nanosecond longer
// than their period.
func (e entry) longer() entry {
	of := e.config.New
	e.config.New = func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
		l.Per--
		return of(tb, l)
	}
	return e
}

func (e entry) only(is func(limitertest.Limit) bool) entry {
	e.config.Limits = slices.DeleteFunc(append(limitertest.Limits(), limitertest.Limit{Tokens: 1, Per: 100 * time.Millisecond, Burst: 20}),
		func(l limitertest.Limit) bool { return !is(l) })
	return e
}

// daily reports whether a day is a multiple of the limit's period. A synctest bubble begins at midnight. So the windows
// of such a limit begin at the same times, whether they are counted from the beginning of the bubble or from 1970.
func daily(l limitertest.Limit) bool { return 24*time.Hour%l.Per == 0 }

// sethvargo returns go-limiter as its documentation configures it. The adapter of the benchmark is different: it counts
// by the hour.
func sethvargo() entry {
	return entry{"sethvargo/go-limiter", "github.com/sethvargo/go-limiter", limitertest.FixedWindow,
		"Tokens for each Interval. Its clock is the runtime's, by a linkname", limitertest.Config{
			Promise: limitertest.FixedWindow, Keys: 1000, Outside: true,
			Skip: map[string]string{"Costs": "a request is one token"},
			New: func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
				store, err := memorystore.New(&memorystore.Config{Tokens: l.Tokens, Interval: l.Per})
				require.NoError(tb, err)
				tb.Cleanup(func() { _ = store.Close(context.Background()) })
				return limitertest.TakeFunc(func(key string, _ int64) limitertest.Decision {
					_, _, _, ok, err := store.Take(context.Background(), key)
					return limitertest.Decision{Allowed: ok && err == nil, RetryAfter: -1}
				})
			},
		}}
}

func weir(name, says string, promise limitertest.Promise, of func(limitertest.Limit) engine.Policy) entry {
	return entry{name, "github.com/weir-go/weir", promise, says, limitertest.Config{
		Promise: promise, Keys: 1000,
		LateBy: func(l limitertest.Limit) time.Duration { late, _ := of(l).Precision(); return late },
		New: func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
			late, err := of(l).Precision()
			if err != nil || promise == limitertest.FixedWindow && late > 0 {
				return nil
			}
			if bytes, err := engine.Bytes(of(l), engine.MaxKeys(1<<16)); err != nil || bytes > 1<<28 {
				return nil
			}
			made, err := engine.New(of(l), engine.MaxKeys(1<<16))
			if err != nil {
				return nil
			}
			tb.Cleanup(func() { _ = made.Close() })
			return limitertest.TakeFunc(func(key string, n int64) limitertest.Decision {
				if n < 0 {
					return limitertest.Decision{RetryAfter: -1}
				}
				d := made.Take(key, uint64(n))
				return limitertest.Decision{Allowed: d.Allowed, RetryAfter: d.RetryAfter}
			})
		},
	}}
}

func entries() []entry {
	return []entry{
		weir("weir token bucket", "burst and rate, never early", limitertest.Bucket, func(l limitertest.Limit) engine.Policy {
			return engine.TokenBucket(engine.Per(float64(l.Tokens), l.Per), l.Burst)
		}),
		weir("weir batch refill", "a batch at multiples of the interval", limitertest.BatchRefill, func(l limitertest.Limit) engine.Policy {
			return engine.BatchRefill(l.Tokens, l.Per, l.Burst)
		}),
		weir("weir fixed window", "so many in a window that a request begins", limitertest.FixedWindow, func(l limitertest.Limit) engine.Policy {
			return engine.FixedWindow(l.Tokens, l.Per)
		}),
		weir("weir sliding window", "two counters, weighted", limitertest.SlidingEstimate, func(l limitertest.Limit) engine.Policy {
			return engine.SlidingWindow(l.Tokens, l.Per)
		}),
		weir("weir sliding log", "so many in any window", limitertest.SlidingExact, func(l limitertest.Limit) engine.Policy {
			return engine.SlidingLog(l.Tokens, l.Per)
		}),
		peer("x/time/rate, sync.Map", "rate.Limiter: a token bucket of size b, refilled at rate r", limitertest.Bucket, nil).with(xtime).rounds().
			skip("Cancel/Order", "documented: others that were made since are considered").
			skip("Cancel/Wait", "the same, of waiters that give up in any order"),
		sethvargo(),
		peer("throttled", "GCRA: a rate and a burst", limitertest.Bucket, nil).with(gcra).rounds(),
		peer("ulule/limiter", "so many requests in a period", limitertest.FixedWindow, nil).longer().
			skip("Costs", "Increment counts what it refuses, and Get asks for one"),
		peer("tollbooth", "a token bucket for each key, until the key expires (an hour in its examples)", limitertest.Bucket,
			nil).only(func(l limitertest.Limit) bool { return l.Per < time.Hour }).rounds(),
		peer("httprate", "a sliding window counter, whose windows begin at multiples of the period since the year 1", limitertest.SlidingEstimate,
			nil).with(increments).only(daily),
		peer("tailscale util/limiter", "a token at each multiple of RefillInterval, up to Max", limitertest.BatchRefill,
			map[string]string{"Forget": "documented: only the Size most recently seen keys are tracked"}).
			only(func(l limitertest.Limit) bool { return l.Tokens == 1 }),
		peer("echo", "a rate.Limiter for each key, dropped when it was idle for ExpiresIn", limitertest.Bucket, nil).rounds(),
		peer("grafana/dskit", "a rate.Limiter for each tenant", limitertest.Bucket, nil).with(ofTenants).rounds().
			skip("Cancel/Order", "that of x/time/rate").skip("Cancel/Wait", "that of x/time/rate"),
		peer("juju/ratelimit (un-keyed)", "a token at each multiple of fillInterval since the bucket was made", limitertest.BatchRefill, nil).
			keyed(buckets).only(func(l limitertest.Limit) bool { return l.Tokens == 1 }),
		peer("failsafe-go (un-keyed)", "bursty: permits for each period since the limiter was made", limitertest.AlignedWindow, nil).keyed(permits).
			only(daily),
	}
}

// TestLeague prints the table of make audit. Each library runs in a separate process.
func TestLeague(t *testing.T) {
	if os.Getenv("WEIR_AUDIT") == "" {
		t.Skip("make audit runs it")
	}
	if one := os.Getenv("WEIR_AUDIT_ONE"); one != "" {
		for _, e := range entries() {
			if e.name == one {
				limitertest.Test(t, e.config)
			}
		}
		return
	}
	for _, e := range entries() {
		run := exec.Command(os.Args[0], "-test.run", "^TestLeague$", "-test.v", "-test.timeout", "10m")
		run.Env = append(os.Environ(), "WEIR_AUDIT_ONE="+e.name)
		out, _ := run.CombinedOutput()
		fmt.Printf("## %s\n\n%s, %s\n\nPromises: %s. Held against: %s.\n\n", e.name, e.module, version(e.module), e.says, e.promise)
		fmt.Println(summary(string(out)))
	}
}

var result = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): TestLeague/(\S+)`)

// summary returns the output of limitertest as text: subtests by results, and messages of failures.
func summary(out string) string {
	by := map[string][]string{}
	for _, m := range result.FindAllStringSubmatch(out, -1) {
		by[m[1]] = append(by[m[1]], m[2])
	}
	text := fmt.Sprintf("Passed: %s. Skipped: %s. Failed: %s.\n", list(by["PASS"]), list(by["SKIP"]), list(by["FAIL"]))
	for line := range strings.SplitSeq(out, "\n") {
		if strings.Contains(line, "=== ") || strings.Contains(line, "--- ") || strings.TrimSpace(line) == "" {
			continue
		}
		text += "    " + line + "\n"
	}
	return text
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// version returns the version of a module from go.mod, because a test binary does not know its modules.
func version(module string) string {
	text, _ := os.ReadFile("../go.mod")
	if m := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + `(?:/v\d+)? (v\S+)`).FindSubmatch(text); m != nil && !strings.HasSuffix(module, "/weir") {
		return string(m[1])
	}
	return "this tree"
}

// TestEveryEntryIsAPeer: every entry of the table names a peer of the benchmark.
func TestEveryEntryIsAPeer(t *testing.T) { require.Greater(t, len(entries()), 12) }
