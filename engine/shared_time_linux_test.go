package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sharedfile"
)

// fastShared returns a limiter of a file, with a bucket that gets a token per microsecond.
func fastShared(path string) (*Limiter, error) {
	return New(TokenBucket(PerSecond(1e6), 1), Shared(path), MaxKeys(1000))
}

// admits requires that at least 19 of a million requests are admitted. If the table's time were hours ahead, only one
// request would be admitted.
func admits(t *testing.T, l *Limiter, key string) {
	admitted := 0
	for range 1_000_000 {
		if l.Allow(key) {
			if admitted++; admitted == 19 {
				return
			}
		}
	}
	assert.Fail(t, "no bucket refills", "%s: %d of a million requests are admitted", key, admitted)
}

// TestSharedBesideAClockThatRanAhead: a process whose counter ran ahead does not move the table's time.
func TestSharedBesideAClockThatRanAhead(t *testing.T) {
	for name, first := range map[string]func(l *Limiter){
		"decides":       func(l *Limiter) { l.Allow("key") },
		"sweeps":        (*Limiter).Sweep,
		"sweeps epochs": func(l *Limiter) { l.table.SweepEpoch(l.clock.nanos(), nil) },
		"inserts": func(l *Limiter) {
			for i := range 5000 {
				l.Allow("other " + strconv.Itoa(i))
			}
		},
		"gives back":      func(l *Limiter) { l.Refund(l.Key("key"), 1) },
		"changes limits":  func(l *Limiter) { _ = l.SetPolicy(TokenBucket(PerSecond(1e6), 2)) },
		"by its own time": func(l *Limiter) { l.TakeAt(l.Key("key"), 1, time.Now().Add(time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "table")
			slept, err := fastShared(path)
			require.NoError(t, err)
			defer slept.Close()
			if slept.clock.counter == nil {
				t.Skip("this machine has no counter that is trusted")
			}
			other, err := fastShared(path)
			require.NoError(t, err)
			defer other.Close()
			admits(t, other, "key")

			counter := &slept.clock.counter.current
			line := *counter.Load()
			line.nanos += int64(8 * time.Hour)
			counter.Store(&line)
			first(slept)
			assert.LessOrEqual(t, other.table.Watermark(), other.clock.machine(), "the table is not ahead")
			policy := other.Policy(0)
			next, err := New(policy, Shared(path), MaxKeys(1000))
			require.NoError(t, err)
			defer next.Close()
			for _, l := range []*Limiter{other, next, slept} {
				admits(t, l, "key")
				admits(t, l, "another")
			}
		})
	}
}

// TestSharedTableAheadOfTheClock: New refuses a table whose time is ahead of the machine's clock after a bit flip, and
// says so.
func TestSharedTableAheadOfTheClock(t *testing.T) {
	for _, bit := range []int{56, 57, 58, 61, 62} {
		path := filepath.Join(t.TempDir(), "table")
		l, err := fastShared(path)
		require.NoError(t, err)
		defer l.Close()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		defer f.Close()
		mark := uint64(l.table.Watermark())
		_, err = f.WriteAt([]byte{byte(mark>>56) ^ byte(1<<(bit-56))}, sharedfile.HeaderBytes+7)
		require.NoError(t, err)
		_, err = fastShared(path)
		if mark>>bit&1 == 0 {
			assert.ErrorContains(t, err, "ahead of the machine's clock", "bit %d", bit)
			assert.ErrorContains(t, err, "remove the file", "bit %d", bit)
		} else {
			assert.NoError(t, err, "bit %d: an earlier watermark", bit)
		}
	}
}

// TestSharedNamespaced is the program of TestSharedTimeNamespaces.
func TestSharedNamespaced(t *testing.T) {
	path := os.Getenv("WEIR_TEST_SHARED")
	if path == "" {
		t.Skip("TestSharedTimeNamespaces runs this")
	}
	l, err := dailyShared(path)
	require.NoError(t, err)
	defer l.Close()
	fmt.Println("took", l.Take("key", 5).Remaining, l.clock.exactNanos())
}

// dailyShared returns a limiter of a file, with a rate so slow that no token comes back while a test runs.
func dailyShared(path string) (*Limiter, error) {
	return New(TokenBucket(Per(1, 24*time.Hour), 10), Shared(path), MaxKeys(100))
}

// TestSharedTimeNamespaces: processes in two time namespaces use one timeline and take from the same bucket.
func TestSharedTimeNamespaces(t *testing.T) {
	namespaced := func(path string) (left uint64, clock int64) {
		command := exec.CommandContext(t.Context(), "unshare", "--time", "--monotonic", "86400", "--fork",
			os.Args[0], "-test.run=^TestSharedNamespaced$")
		command.Env = append(os.Environ(), "WEIR_TEST_SHARED="+path)
		out, err := command.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "FAIL") {
			fmt.Printf("TestSharedTimeNamespaces is skipped: no time namespace can be made here: %v: %s", err, out)
			t.Skip("no time namespace can be made here")
		}
		require.NoError(t, err, "%s", out)
		_, err = fmt.Sscanf(string(out), "took %d %d", &left, &clock)
		require.NoError(t, err, "%s", out)
		return left, clock
	}
	for _, firstHere := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "table")
		here := 0
		if firstHere {
			l, err := dailyShared(path)
			require.NoError(t, err)
			defer l.Close()
			require.True(t, l.Allow("key"))
			here = 1
		}
		before := time.Now()
		left, there := namespaced(path)
		assert.EqualValues(t, 5-here, left, "of ten")
		l, err := dailyShared(path)
		require.NoError(t, err)
		defer l.Close()
		now := l.clock.exactNanos()
		assert.GreaterOrEqual(t, now, there-int64(30*time.Millisecond), "the later of the two clocks")
		assert.LessOrEqual(t, now-there, int64(time.Since(before)+30*time.Millisecond), "and the earlier one")
		assert.EqualValues(t, 0, l.Take("key", left).Remaining)
		assert.False(t, l.Allow("key"))
	}
}
