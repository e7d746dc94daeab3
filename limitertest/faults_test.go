package limitertest

import (
	"hash/fnv"
	"math"
	"math/big"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// faults has the names of faults of a plain bucket, each with the subtest that must catch it.
var faults = []struct{ name, caughtBy string }{
	{"one more than the burst", "Burst"},
	{"one less than the burst", "Burst"},
	{"looks, lets go of the lock and takes", "Burst"},
	{"a call never returns", "Burst"},
	{"a burst for each of two shards", "Burst"},
	{"refused where the lock is taken", "Linear"},
	{"two takes at once lose one", "Linear"},
	{"the burst is not the most after silence", "Bound"},
	{"a window of the clock instead of a bucket", "Bound"},
	{"time is rounded up to milliseconds", "Bound"},
	{"seconds since 1970 as a float", "Bound"},
	{"a period has whole seconds", "Bound"},
	{"a period is a day at most", "Bound"},
	{"the rest of a token is thrown away", "Conforming"},
	{"a refused request is charged", "Conforming"},
	{"time is cut to milliseconds", "Conforming"},
	{"a refusal lasts for a second", "Conforming"},
	{"a hash modulo 16384", "Keys"},
	{"keys are cut to 64 bytes", "Keys"},
	{"two of a thousand keys are one", "Keys"},
	{"keys have no slash at the end", "Keys"},
	{"keys end at a zero byte", "Keys"},
	{"keys in lower case", "Keys"},
	{"a sweep that refills", "Forget"},
	{"the least recently used is evicted", "Forget"},
	{"a time to live since the first request", "Forget"},
	{"a negative cost mints", "Costs"},
	{"a refused cost takes what there is", "Costs"},
	{"a cost has 32 bits", "Costs"},
	{"a burst has 16 bits", "Costs"},
	{"a cost times the period overflows", "Costs"},
	{"a huge cost panics", "Costs"},
	{"above the burst passes when full", "Costs"},
	{"the wait is cut to milliseconds", "Retry"},
	{"the wait is that of a full bucket", "Retry"},
	{"the wait forgets the cost", "Retry"},
	{"the wait is that of what never passes", "Retry"},
	{"the wait of what never passes is short", "Retry"},
	{"the product of time and tokens overflows", "Clock"},
	{"the milliseconds that passed have 32 bits", "Clock"},
	{"a late caller sets the clock back", "Clock"},
	{"a refund fills beyond the burst", "Cancel/Refund"},
	{"a canceled turn stays taken", "Cancel/Reserve"},
	{"a canceled turn comes back at once", "Cancel/Reserve"},
	{"a canceled turn with others behind it is lost", "Cancel/Order"},
	{"a wait that gives up stays taken", "Cancel/Wait"},
	{"a wait without enough time stays taken", "Cancel/Wait"},
	{"the clock is read before the lock", "Real"},
	{"a goroutine stays", "Leak"},
	{"keys are never forgotten", "Leak"},
	{"a clock that the test moves is rounded up", "Bound"},
	{"a clock of its own", ""}, // caught before the subtests
}

// TestFaults: each fault, in a process of its own, makes its subtest and the process fail.
func TestFaults(t *testing.T) {
	if seeded := os.Getenv("LIMITERTEST_FAULT"); seeded != "" {
		Test(t, Config{Keys: 2000, Outside: strings.Contains(seeded, "the test moves"), New: func(tb testing.TB, l Limit) Limiter { return newFaulty(tb, l, seeded) }})
		return
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			// Only the subtest that must catch the fault runs. Otherwise another subtest could end the process before
			// it.
			run := exec.Command(os.Args[0], "-test.run", "^TestFaults$/^"+strings.ReplaceAll(f.caughtBy, "/", "$/^")+"$", "-test.v", "-test.timeout", "5m")
			run.Env = append(os.Environ(), "LIMITERTEST_FAULT="+f.name)
			out, err := run.CombinedOutput()
			assert.Error(t, err, "%s", out)
			failed := regexp.MustCompile(`(?m)^\s*--- FAIL: TestFaults(/\S+)? `).FindAllStringSubmatch(string(out), -1)
			if f.caughtBy == "" {
				assert.Len(t, failed, 1, "%s", out)
				assert.Contains(t, string(out), "Config.Outside")
			} else if parts := strings.Count(f.caughtBy, "/") + 2; assert.Len(t, failed, parts, "%s", out) {
				assert.Equal(t, "/"+f.caughtBy, failed[parts-1][1])
			}
			assert.NotContains(t, string(out), "panic: ")
			t.Logf("%s", out)
		})
	}
}

// A seeded has the state of a faulty limiter other than its buckets.
type seeded struct {
	last   map[string]time.Time
	window map[string]int64
	tokens map[string]*clocked
	used   []string // the keys in the order in which they came
	now    time.Duration
	told   time.Time
	asked  atomic.Int64
}

// A clocked has the tokens of a key. For faults in counting time, it replaces the level.
type clocked struct {
	tokens int64
	at     time.Time
	float  float64
	since  float64
}

// faulty decides a request in a faulty way, if the bucket has a fault in taking tokens. In this case the result done is
// true.
func (b *bucket) faulty(key string, n int64) (d Decision, done bool) {
	switch b.fault {
	case "a call never returns":
		if strings.HasPrefix(key, "burst-") {
			select {}
		}
	case "looks, lets go of the lock and takes":
		return b.inTwoSteps(key, n, false), true
	case "two takes at once lose one":
		return b.inTwoSteps(key, n, true), true
	case "refused where the lock is taken":
		if !b.mu.TryLock() {
			return Decision{RetryAfter: -1}, true
		}
		defer b.mu.Unlock()
		runtime.Gosched()
		return b.take(key, n, time.Now()), true
	case "the clock is read before the lock":
		now := time.Now()
		others := 1
		if b.asked.Add(1)%16 == 0 { // as if the system had suspended this thread, which happens only seldom
			others = 50
		}
		for range others {
			runtime.Gosched()
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		d = b.take(key, n, now)
		b.keys[key].at = now
		return d, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, answer := range []func(string, int64, time.Time) (Decision, bool){
		b.faultyBurst, b.faultyClock, b.faultyKey, b.faultyCost,
	} {
		if d, done = answer(key, n, now); done {
			break
		}
	}
	return d, done
}

func (b *bucket) faultyBurst(key string, n int64, now time.Time) (d Decision, done bool) {
	l := b.limit
	switch b.fault {
	case "one more than the burst":
		b.limit.Burst++
		d = b.take(key, n, now)
		b.limit.Burst--
		return d, true
	case "one less than the burst":
		less := min(b.limit.Burst-1, 1)
		b.limit.Burst -= less
		d = b.take(key, n, now)
		b.limit.Burst += less
		return d, true
	case "a burst for each of two shards":
		if d = b.take("0"+key, n, now); !d.Allowed {
			d = b.take("1"+key, n, now)
		}
		return d, true
	case "the burst is not the most after silence":
		state := b.key(key, now)
		if last, ok := b.last[key]; ok && state.used.Sign() == 0 && now.Sub(last) > 2*l.Per {
			state.used.Sub(state.used, b.units(1))
		}
		b.last[key] = now
		return b.take(key, n, now), true
	case "a window of the clock instead of a bucket":
		index := now.UnixNano() / int64(l.Per) // refilled at multiples of the period
		if state := b.key(key, now); b.window[key] != index {
			b.window[key] = index
			state.used.SetInt64(0)
		}
		return b.take(key, n, now), true
	case "time is rounded up to milliseconds":
		return b.take(key, n, now.Add(time.Millisecond-1).Truncate(time.Millisecond)), true
	case "time is cut to milliseconds":
		return b.take(key, n, now.Truncate(time.Millisecond)), true
	case "a refused request is charged":
		if d = b.take(key, n, now); !d.Allowed {
			b.key(key, now).used.Add(b.key(key, now).used, integer(l.Per/4+1))
		}
		return d, true
	case "a refusal lasts for a second":
		if until, ok := b.last[key]; ok && now.Before(until) {
			return Decision{RetryAfter: until.Sub(now)}, true
		}
		if d = b.take(key, n, now); !d.Allowed && n <= int64(l.Burst) {
			b.last[key] = now.Add(time.Second)
		}
		return d, true
	}
	return d, false
}

// inTwoSteps checks and takes in two steps, so that other calls come in between. The second step normally takes from
// the current number of tokens. If lost is set, it takes from the number that the first step read.
func (b *bucket) inTwoSteps(key string, n int64, lost bool) Decision {
	b.mu.Lock()
	state, units := b.key(key, time.Now()), b.units(max(n, 0))
	saw, wait := new(big.Int).Set(state.used), b.wait(state, units)
	b.mu.Unlock()
	runtime.Gosched()
	if wait > 0 {
		return Decision{RetryAfter: wait}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if lost {
		state.used.Set(saw)
	}
	state.used.Add(state.used, units)
	return Decision{Allowed: true}
}

func (b *bucket) faultyKey(key string, n int64, now time.Time) (d Decision, done bool) {
	switch b.fault {
	case "a hash modulo 16384":
		hash := fnv.New32a()
		hash.Write([]byte(key))
		key = string(rune(hash.Sum32() % 16384 % 55000))
	case "keys are cut to 64 bytes":
		key = key[:min(len(key), 64)]
	case "keys end at a zero byte":
		key, _, _ = strings.Cut(key, "\x00")
	case "keys in lower case":
		key = strings.ToLower(key)
	case "two of a thousand keys are one":
		key = strings.Replace(key, "user-901", "user-900", 1)
	case "keys have no slash at the end":
		key = strings.TrimSuffix(key, "/")
	case "a sweep that refills":
		for name, state := range b.keys {
			if now.Sub(state.at) > time.Minute {
				delete(b.keys, name)
			}
		}
	case "a time to live since the first request":
		if came, ok := b.last[key]; !ok || now.Sub(came) > 10*time.Minute {
			b.last[key] = now
			delete(b.keys, key)
		}
	case "the least recently used is evicted":
		if _, ok := b.keys[key]; !ok {
			if b.used = append(b.used, key); len(b.used) > 4000 {
				delete(b.keys, b.used[0])
				b.used = b.used[1:]
			}
		}
	default:
		return d, false
	}
	return b.take(key, n, now), true
}

func (b *bucket) faultyCost(key string, n int64, now time.Time) (d Decision, done bool) {
	l, state := b.limit, b.key(key, now)
	switch b.fault {
	case "a negative cost mints":
		if n < 0 {
			state.used.Add(state.used, b.units(n))
			return Decision{Allowed: true}, true
		}
	case "a refused cost takes what there is":
		if d = b.take(key, n, now); !d.Allowed && n > 1 {
			state.used.Set(b.burst())
		}
		return d, true
	case "a cost has 32 bits":
		n = int64(int32(n))
	case "a cost times the period overflows":
		if units := uint64(n) * uint64(l.Per); n > 0 && units < uint64(l.Per)*l.Burst {
			if wait := b.wait(state, integer(units)); wait == 0 {
				state.used.Add(state.used, integer(units))
				return Decision{Allowed: true}, true
			}
		}
	case "a huge cost panics":
		if n > math.MaxInt32 {
			panic("too large")
		}
	case "above the burst passes when full":
		if n > int64(l.Burst) && state.used.Sign() == 0 {
			state.used.Set(b.burst())
			return Decision{Allowed: true}, true
		}
	case "the wait is cut to milliseconds":
		d = b.take(key, n, now)
		if d.RetryAfter > time.Millisecond {
			d.RetryAfter = d.RetryAfter.Truncate(time.Millisecond)
		}
		return d, true
	case "the wait is that of a full bucket":
		if d = b.take(key, n, now); !d.Allowed && d.RetryAfter >= 0 {
			d.RetryAfter = b.wait(state, b.burst())
		}
		return d, true
	case "the wait forgets the cost":
		if d = b.take(key, n, now); !d.Allowed && d.RetryAfter >= 0 {
			d.RetryAfter = max(b.wait(state, b.units(1)), 1)
		}
		return d, true
	case "the wait is that of what never passes":
		if d = b.take(key, n, now); !d.Allowed && d.RetryAfter >= 0 {
			d.RetryAfter = math.MaxInt64
		}
		return d, true
	case "the wait of what never passes is short":
		if d = b.take(key, n, now); d.RetryAfter < 0 {
			d.RetryAfter = l.Per
		}
		return d, true
	}
	return b.take(key, n, now), true
}

// faultyClock decides a request if the fault is in counting time. Such faults count tokens in a clocked.
func (b *bucket) faultyClock(key string, n int64, now time.Time) (d Decision, done bool) {
	l, burst := b.limit, int64(b.limit.Burst)
	switch b.fault {
	case "the milliseconds that passed have 32 bits":
		b.now += now.Sub(b.told) % (1 << 32 * time.Millisecond)
		b.told = now
		return b.take(key, n, time.Unix(0, int64(b.now))), true
	case "a clock of its own":
		return b.take(key, n, outside()), true
	case "the rest of a token is thrown away", "seconds since 1970 as a float", "the product of time and tokens overflows":
	default:
		return d, false
	}
	c, ok := b.tokens[key]
	if !ok {
		c = &clocked{tokens: burst, float: float64(burst), at: now, since: float64(now.UnixNano()) / 1e9}
		b.tokens[key] = c
	}
	elapsed := now.Sub(c.at)
	switch b.fault {
	case "the rest of a token is thrown away":
		c.tokens, c.at = min(burst, c.tokens+int64(float64(elapsed)*float64(l.Tokens)/float64(l.Per))), now
	case "seconds since 1970 as a float":
		seconds := float64(now.UnixNano()) / 1e9
		c.float = min(float64(burst), c.float+(seconds-c.since)*float64(l.Tokens)/l.Per.Seconds())
		if c.since = seconds; n <= 0 || float64(n) <= c.float {
			c.float -= float64(max(n, 0))
			return Decision{Allowed: true}, true
		}
		return Decision{RetryAfter: -1}, true
	case "the product of time and tokens overflows":
		if whole := int64(elapsed) * int64(l.Tokens) / int64(l.Per); whole != 0 {
			c.tokens = max(min(burst, c.tokens+whole), 0)
			c.at = c.at.Add(time.Duration(whole) * l.Per / time.Duration(l.Tokens))
		}
	}
	if n <= c.tokens {
		c.tokens -= max(n, 0)
		return Decision{Allowed: true}, true
	}
	return Decision{RetryAfter: -1}, true
}

// outside reads a clock outside of the bubble: the memory that was allocated so far.
func outside() time.Time {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return time.Unix(1, int64(m.Mallocs))
}

func newFaulty(tb testing.TB, l Limit, fault string) Limiter {
	if fault == "a clock that the test moves is rounded up" {
		return newMovedBucket(l, time.Millisecond)
	}
	switch fault {
	case "a period has whole seconds":
		l.Per = max(l.Per.Truncate(time.Second), time.Second)
	case "a period is a day at most":
		l.Per = min(l.Per, day)
	case "a burst has 16 bits":
		l.Burst &= math.MaxUint16
	}
	b := newBucket(l, fault)
	b.seeded = seeded{last: map[string]time.Time{}, window: map[string]int64{}, tokens: map[string]*clocked{}, told: time.Now()}
	b.now = time.Duration(b.told.UnixNano())
	if fault == "a goroutine stays" {
		go func() {
			for {
				time.Sleep(time.Minute)
			}
		}()
	}
	return b
}
