package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sharedfile"
)

// settable has, for every algorithm that can be shared, the policies between which the tests change.
var settable = map[string]func(limit uint64) Policy{
	"token bucket":   func(limit uint64) Policy { return TokenBucket(Per(float64(limit), time.Hour), limit) },
	"batch refill":   func(limit uint64) Policy { return BatchRefill(limit, time.Hour, limit) },
	"fixed window":   func(limit uint64) Policy { return FixedWindow(limit, time.Hour) },
	"aligned":        func(limit uint64) Policy { return FixedWindow(limit, time.Hour).Aligned() },
	"sliding window": func(limit uint64) Policy { return SlidingWindow(limit, time.Hour) },
	"token buckets":  func(limit uint64) Policy { return TokenBuckets(time.Duration(limit) * time.Minute) },
}

func pair(t *testing.T, policy Policy, options ...Option) (one, other *Limiter) {
	path := filepath.Join(t.TempDir(), "table")
	options = append(options, Shared(path), ClockFunc(frozen), MaxKeys(100))
	one, err := New(policy, options...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, one.Close()) })
	other, err = New(policy, options...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, other.Close()) })
	return one, other
}

// TestSetPolicyOfOneIsFollowedByAll (I1): after SetPolicy of one limiter, another limiter of the file has the new
// numbers with its next call.
func TestSetPolicyOfOneIsFollowedByAll(t *testing.T) {
	for name, policy := range settable {
		t.Run(name, func(t *testing.T) {
			one, other := pair(t, policy(100))
			quotas, hasQuotas := map[*Limiter]Quota{}, policy(1).Longest() > 0
			if hasQuotas {
				for _, l := range []*Limiter{one, other} {
					var err error
					quotas[l], err = l.Quota(TokenBucket(PerSecond(1), 100))
					require.NoError(t, err)
				}
			}
			take := func(l *Limiter, n uint64) Decision { return l.TakeKey(l.Key("a").With(quotas[l]), n) }
			require.True(t, take(other, 50).Allowed)
			for i, limit := range []uint64{200, 100, 200, 400, 100} {
				setter, follower := one, other
				if i%2 == 1 {
					setter, follower = other, one
				}
				require.NoError(t, setter.SetPolicy(policy(limit)))
				if i%2 == 0 { // with odd numbers, its next call is a decision
					assert.Equal(t, policy(limit), follower.Policy(0))
				}
				d := take(follower, 0)
				if !hasQuotas {
					assert.Equal(t, limit, d.Limit)
					assert.Contains(t, []uint64{limit - 50, limit - 51}, d.Remaining, "after %d", i)
				} else {
					assert.EqualValues(t, 50, d.Remaining, "time that is owed stays what it is")
				}
			}
			require.True(t, take(one, take(one, 0).Remaining).Allowed)
			assert.False(t, take(other, 1).Allowed)
			require.NoError(t, one.SetPolicy(Blocked()))
			assert.False(t, other.Allow("b"))
			require.NoError(t, other.SetPolicy(Unlimited()))
			assert.True(t, one.Allow("a"))
			require.NoError(t, one.SetPolicy(policy(100)))
			assert.False(t, take(other, 1).Allowed, "no fresh bucket")
			assert.ErrorContains(t, one.SetPolicy(SlidingLog(5, time.Second)), "stays of that kind")
		})
	}
}

// TestEveryAlgorithmInAFile: another process accepts the file of every algorithm that can be shared.
func TestEveryAlgorithmInAFile(t *testing.T) {
	for _, a := range algorithms {
		if a.name == "sliding log" {
			continue
		}
		path := filepath.Join(t.TempDir(), "table")
		for range 2 {
			l, err := New(a.policy(5), Shared(path), MaxKeys(100))
			require.NoError(t, err, a.name)
			defer l.Close()
		}
	}
}

// TestSetPolicyOfAllAtOnce: after concurrent changes of the policy, all limiters of a file have the same policy.
func TestSetPolicyOfAllAtOnce(t *testing.T) {
	tier := func(limit uint64) Policy { return TokenBucket(PerSecond(1), 10*limit) }
	one, other := pair(t, TokenBucket(PerSecond(1), 1), Tiers(tier(1)))
	var setting sync.WaitGroup
	for i, l := range []*Limiter{one, other, one, other} {
		setting.Go(func() {
			for n := range uint64(200) {
				limit := 1 + n*4 + uint64(i)
				assert.NoError(t, l.SetPolicy(TokenBucket(PerSecond(1), limit), tier(limit)))
			}
		})
	}
	setting.Wait()
	assert.Equal(t, one.Policy(0), other.Policy(0))
	assert.Equal(t, tier(one.Policy(0).Limit()), other.Policy(1))
	key := other.Key("a").Tier(1)
	assert.Equal(t, 10*one.Policy(0).Limit(), other.TakeKey(key, 1).Limit)
	assert.Equal(t, tier(one.Policy(0).Limit()).Limit()-2, one.TakeKey(one.Key("a").Tier(1), 1).Remaining)
}

// TestReplacePolicy: ReplacePolicy replaces the numbers in a file, except settings that SetPolicy cannot change.
func TestReplacePolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	make := func(policy Policy, options ...Option) (*Limiter, error) {
		return New(policy, append([]Option{Shared(path), ClockFunc(frozen), MaxKeys(100)}, options...)...)
	}
	tier := func(limit uint64) Option { return Tiers(TokenBucket(PerSecond(1), limit)) }
	old, err := make(TokenBucket(PerSecond(1), 10), tier(20))
	require.NoError(t, err)
	defer old.Close()
	require.True(t, old.Take("a", 5).Allowed)
	_, err = make(TokenBucket(PerSecond(1), 30), tier(20))
	assert.ErrorContains(t, err, `policy: the file has "token bucket 1/s burst 10", this process wants "token bucket 1/s burst 30"`)
	_, err = make(TokenBucket(PerSecond(1), 10), tier(21))
	assert.ErrorContains(t, err, `tier 1: the file has "token bucket 1/s burst 20", this process wants "token bucket 1/s burst 21"`)
	assert.ErrorContains(t, err, "engine.ReplacePolicy")
	for _, c := range []struct {
		policy  Policy
		options []Option
		want    string
	}{
		{FixedWindow(10, time.Hour), []Option{Tiers(FixedWindow(20, time.Hour))}, `algorithm: the file has "token bucket", this process wants "fixed window"`},
		{TokenBucket(PerSecond(1), 10), []Option{Tiers()}, `tiers: the file has "1", this process wants "0"`},
		{TokenBucket(PerSecond(1), 10), []Option{MaxKeys(7)}, `MaxKeys: the file has`},
		{Unlimited(), nil, `algorithm: the file has "token bucket", this process wants "token buckets"`},
	} {
		_, err = make(c.policy, append([]Option{tier(20), ReplacePolicy()}, c.options...)...)
		assert.ErrorContains(t, err, c.want)
	}
	l, err := make(TokenBucket(PerSecond(1), 30), tier(40), ReplacePolicy())
	require.NoError(t, err)
	defer l.Close()
	assert.EqualValues(t, 25, old.Take("a", 0).Remaining)
	assert.Equal(t, TokenBucket(PerSecond(1), 40), old.Policy(1))
	h := look(t, path).header()
	assert.Equal(t, []Policy{TokenBucket(PerSecond(1), 30), TokenBucket(PerSecond(1), 40)}, h.Policies)

	_, err = New(TokenBucket(PerSecond(1), 10), ReplacePolicy())
	assert.EqualError(t, err, "engine: ReplacePolicy without Shared: want both, or a limiter of one's own")
	lifetime := filepath.Join(t.TempDir(), "table")
	path = lifetime
	inFlight, err := make(Concurrency(5, time.Hour))
	require.NoError(t, err)
	defer inFlight.Close()
	_, err = make(Concurrency(5, time.Minute), ReplacePolicy())
	assert.ErrorContains(t, err, `"concurrency, forgotten after 1h0m0s"`)
}

// TestNewComesBehindAnAnnouncedChange: New completes the change of a process that has died. Otherwise that change would
// replace the policy later.
func TestNewComesBehindAnAnnouncedChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	make := func(limit uint64, options ...Option) (*Limiter, error) {
		return New(TokenBucket(PerSecond(1), limit), append(options, Shared(path), ClockFunc(frozen), MaxKeys(100))...)
	}
	old, err := make(10)
	require.NoError(t, err)
	defer old.Close()
	announce := func(plan, limit uint64) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		defer f.Close()
		put := func(at int64, words ...uint64) {
			for i, word := range words {
				_, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, word), sharedfile.HeaderBytes+at+int64(i)*8)
				require.NoError(t, err)
			}
		}
		numbers := newPolicySet(TokenBucket(PerSecond(1), limit), nil).numbers()
		put(4096+int64(plan%2)*1024, append([]uint64{uint64(len(numbers))}, numbers...)...)
		put(80, plan<<1|1)
	}
	announce(2, 30)
	require.EqualValues(t, 10, old.Policy(0).Limit())
	_, err = make(10)
	assert.ErrorContains(t, err, `the file has "token bucket 1/s burst 30"`)
	announce(3, 40)
	l, err := make(30, ReplacePolicy())
	require.NoError(t, err)
	defer l.Close()
	l.Sweep()
	assert.EqualValues(t, 30, l.Policy(0).Limit())
	assert.EqualValues(t, 30, old.Policy(0).Limit())
}

// TestSharedTableFollowsThePolicy: ReadShared returns the current policies, or the latest valid policies.
func TestSharedTableFollowsThePolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	l, err := sharedLimiter(path)
	require.NoError(t, err)
	defer l.Close()
	table := look(t, path)
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(2), 7)))
	assert.Equal(t, []Policy{TokenBucket(PerSecond(2), 7)}, table.header().Policies)
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(2), 8)))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	page := make([]byte, 4096)
	_, err = f.ReadAt(page, sharedfile.HeaderBytes+4096)
	require.NoError(t, err)
	for at := 8; at < len(page); at += 1024 {
		binary.NativeEndian.PutUint64(page[at:], 99)
	}
	_, err = f.WriteAt(page, sharedfile.HeaderBytes+4096)
	require.NoError(t, err)
	assert.Equal(t, []Policy{TokenBucket(PerSecond(2), 7)}, table.header().Policies, "which it has seen last")
	assert.Equal(t, uint64(8), l.Take("a", 1).Limit)
	_, err = ReadShared(path)
	assert.ErrorContains(t, err, "policy 0 begins with 0x63")
	_, err = New(TokenBucket(PerSecond(1), sharedBurst), Shared(path), ClockFunc(frozen), MaxKeys(1000))
	assert.ErrorContains(t, err, "policy: that of the file is damaged")
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(2), 9)), "which writes a new one")
	assert.Equal(t, []Policy{TokenBucket(PerSecond(2), 9)}, table.header().Policies)
}

// setPolicies are two policies with different ticks, between which processes change.
var setPolicies = [2]Policy{TokenBucket(PerSecond(1), sharedBurst), TokenBucket(PerSecond(3), 2*sharedBurst)}

// TestSharedSetter is the program of a process that changes the policy back and forth until the test stops it.
func TestSharedSetter(t *testing.T) {
	path := os.Getenv("WEIR_TEST_SHARED")
	if path == "" {
		t.Skip("a process of TestSharedSettersKilled runs this")
	}
	counts := tally(t, path+".tally")
	l, err := sharedLimiter(path, ReplacePolicy())
	require.NoError(t, err)
	defer l.Close()
	fmt.Println("ready")
	for i := 0; counts[stopped].Load() == 0; i++ {
		require.NoError(t, l.SetPolicy(setPolicies[i%2]))
		counts[changes].Add(1)
	}
}

// TestSharedSettersKilled (I1): if processes that change the policy are killed, no key gets more than the larger limit.
func TestSharedSettersKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	counts := tally(t, path+".tally")
	workers := []*exec.Cmd{worker(t, path), worker(t, path)}
	survivor, err := sharedLimiter(path)
	require.NoError(t, err)
	defer survivor.Close()
	setters := []*exec.Cmd{processOf(t, "TestSharedSetter", path), processOf(t, "TestSharedSetter", path)}
	for i := range killsOf(t) {
		for until := counts[changes].Load() + rand.Uint64N(100); counts[changes].Load() < until; {
			runtime.Gosched()
		}
		s := i % len(setters)
		require.NoError(t, setters[s].Process.Signal(syscall.SIGKILL))
		assert.ErrorContains(t, setters[s].Wait(), "killed")
		require.NoError(t, survivor.SetPolicy(setPolicies[i/2%2]), "after kill %d", i)
		setters[s] = processOf(t, "TestSharedSetter", path)
	}
	stopWhenDrained(t, survivor, counts, append(workers, setters...))
	for i := range sharedKeys {
		got := counts[i].Load()
		assert.LessOrEqual(t, got, uint64(2*sharedBurst), "key %d", i)
		assert.GreaterOrEqual(t, got, uint64(sharedBurst), "key %d", i)
	}
	t.Logf("%d changes, %d of the first key", counts[changes].Load(), counts[0].Load())
	survivor.Sweep()
	o := survivor.table.Occupancy()
	assert.Zero(t, o.Claimed+o.Tentative, "%+v", o)
}

// TestASharedSetterThatIsSuspended (I1): tokens taken while a process is suspended in SetPolicy count under the new
// policy.
func TestASharedSetterThatIsSuspended(t *testing.T) {
	for name, rates := range map[string][2]Rate{
		"to a faster rate": {PerSecond(1), PerSecond(100)},
		"to a slower rate": {PerSecond(100), PerSecond(1)},
	} {
		t.Run(name, func(t *testing.T) {
			reached := 0
			for reading := 1; reading == reached+1; reading++ {
				path, h := filepath.Join(t.TempDir(), "table"), new(hand)
				open := func(clock func() time.Time) *Limiter {
					l, err := New(TokenBucket(rates[0], 100), Shared(path), ClockFunc(clock), MaxKeys(100))
					require.NoError(t, err)
					t.Cleanup(func() { assert.NoError(t, l.Close()) })
					return l
				}
				left := 0
				var other *Limiter
				setter := open(func() time.Time {
					now := h.now()
					if left--; left == 0 {
						reached = reading
						h.advance(5 * time.Second)
						require.True(t, other.Take("k", 100).Allowed)
					}
					return now
				})
				other = open(h.now)
				left = reading
				require.NoError(t, setter.SetPolicy(TokenBucket(rates[1], 100)))
				left = 0
				for range 2 {
					assert.Equal(t, reached < reading, other.Allow("k"), "reading %d", reading)
					assert.Equal(t, reached < reading, setter.Allow("k"), "reading %d", reading)
					h.advance(4 * time.Millisecond)
				}
			}
			require.Positive(t, reached)
		})
	}
}
