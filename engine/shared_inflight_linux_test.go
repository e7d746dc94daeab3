package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

const inFlightKeys = 4

func inFlightLimiter(path string, options ...Option) (*Limiter, error) {
	return New(Concurrency(1, time.Hour), append([]Option{Shared(path), MaxKeys(100), SweepInterval(time.Millisecond)}, options...)...)
}

// TestSharedInFlightWorker is the program of a worker, which takes and releases tokens and marks them in shared words.
func TestSharedInFlightWorker(t *testing.T) {
	path := os.Getenv("WEIR_TEST_SHARED")
	if path == "" {
		t.Skip("a process of the tests below runs this")
	}
	counts, own := tally(t, path+".tally"), uint64(os.Getpid())
	l, err := inFlightLimiter(path)
	require.NoError(t, err)
	defer l.Close()
	fmt.Println("ready")
	for counts[stopped].Load() == 0 {
		i := rand.IntN(inFlightKeys)
		d, entry := l.TakeReceipt(l.Key("key "+strconv.Itoa(i)), 1)
		counts[decisions].Add(1)
		if !d.Allowed {
			continue
		}
		if who := counts[i].Swap(own); who != 0 {
			counts[i+inFlightKeys].Store(who)
		}
		counts[i].CompareAndSwap(own, 0)
		entry.Release()
	}
}

// TestSharedInFlightKilled: if processes are killed at any instruction, no process gets a token that another live
// process has.
func TestSharedInFlightKilled(t *testing.T) {
	kills, path := killsOf(t), filepath.Join(t.TempDir(), "table")
	counts := tally(t, path+".tally")
	start := func() *exec.Cmd { return processOf(t, "TestSharedInFlightWorker", path) }
	workers, killed := []*exec.Cmd{start(), start()}, map[uint64]bool{}
	survivor, err := inFlightLimiter(path)
	require.NoError(t, err)
	defer survivor.Close()
	for i := range kills {
		for until := counts[decisions].Load() + rand.Uint64N(20_000); counts[decisions].Load() < until; {
			runtime.Gosched()
		}
		w := i % len(workers)
		require.NoError(t, workers[w].Process.Kill())
		assert.ErrorContains(t, workers[w].Wait(), "killed")
		killed[uint64(workers[w].Process.Pid)] = true
		workers[w] = start()
	}
	for _, w := range workers {
		require.NoError(t, w.Process.Kill())
		assert.ErrorContains(t, w.Wait(), "killed")
	}
	for i := range inFlightKeys {
		if who := counts[i+inFlightKeys].Load(); who != 0 {
			assert.True(t, killed[who], "process %d was inside of key %d, and alive", who, i)
		}
	}
	survivor.Sweep()
	assert.Zero(t, survivor.Stats().Keys)
	for i := range inFlightKeys {
		d, _ := survivor.TakeReceipt(survivor.Key("key "+strconv.Itoa(i)), 1)
		assert.True(t, d.Allowed, "key %d", i)
		d, _ = survivor.TakeReceipt(survivor.Key("key "+strconv.Itoa(i)), 1)
		assert.False(t, d.Allowed, "key %d", i)
	}
}

// TestSharedInFlightOfTheDead: takes count as long as their process lives, even if it is suspended.
func TestSharedInFlightOfTheDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	l, err := inFlightLimiter(path, SweepInterval(time.Hour))
	require.NoError(t, err)
	defer l.Close()
	hold := func() *exec.Cmd { return processOf(t, "TestSharedInFlightHolder", path) }
	enters := func() bool {
		d, e := l.TakeReceipt(l.Key("key"), 1)
		e.Release()
		return d.Allowed
	}
	for _, then := range []func(){l.Sweep, func() {
		other, err := inFlightLimiter(path)
		require.NoError(t, err)
		require.NoError(t, other.Close())
	}} {
		require.True(t, enters())
		holder := hold()
		assert.False(t, enters())
		require.NoError(t, syscall.Kill(holder.Process.Pid, syscall.SIGSTOP))
		l.Sweep()
		assert.False(t, enters(), "it is stopped, and lives")
		require.NoError(t, holder.Process.Kill())
		require.ErrorContains(t, holder.Wait(), "killed")
		then()
		assert.True(t, enters(), "it is dead")
	}
	assert.EqualValues(t, 2, l.Stats().Forgotten)
}

// TestSharedInFlightOfAnotherBoot: after a reboot nothing is in flight.
func TestSharedInFlightOfAnotherBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	holder := processOf(t, "TestSharedInFlightHolder", path)
	require.NoError(t, holder.Process.Kill())
	require.ErrorContains(t, holder.Wait(), "killed")
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	all := make([]byte, info.Size())
	_, err = file.ReadAt(all, 0)
	require.NoError(t, err)
	lost := 0
	for at := 4096 * 10; at < len(all); at += 8 { // the words of the table
		if w := atomicbucket.Entry(binary.NativeEndian.Uint64(all[at:])); w.What() == atomicbucket.Counted && w.Claimant() == 1<<10 {
			_, err = file.WriteAt(make([]byte, 8), int64(at))
			require.NoError(t, err)
			lost++
		}
	}
	require.Equal(t, 1, lost, "entries")
	_, err = file.WriteAt([]byte("another boot"), 4096)
	require.NoError(t, err)
	l, err := inFlightLimiter(path)
	require.NoError(t, err)
	defer l.Close()
	d, _ := l.TakeReceipt(l.Key("key"), 1)
	assert.True(t, d.Allowed)
}

func TestSharedInFlightHolder(t *testing.T) {
	path := os.Getenv("WEIR_TEST_SHARED")
	if path == "" {
		t.Skip("a process of TestSharedInFlightOfTheDead runs this")
	}
	l, err := inFlightLimiter(path, SweepInterval(time.Hour))
	require.NoError(t, err)
	d, _ := l.TakeReceipt(l.Key("key"), 1)
	require.True(t, d.Allowed)
	fmt.Println("ready")
	select {}
}

// TestSharedInFlight: a take is released only once, also if it is released in parts.
func TestSharedInFlight(t *testing.T) {
	now, folder := frozen(), t.TempDir()
	path := filepath.Join(folder, "table")
	l, err := New(Concurrency(5, time.Minute), Shared(path), MaxKeys(100), ClockFunc(func() time.Time { return now }), Tiers(Concurrency(8, time.Minute)))
	require.NoError(t, err)
	defer l.Close()
	left := func() uint64 { return l.Peek(l.Key("key"), 1).Remaining }
	d, two := l.TakeReceipt(l.Key("key"), 2)
	assert.Equal(t, Decision{Allowed: true, Limit: 5, Remaining: 3, ResetAfter: time.Minute}, d)
	d, _ = l.TakeReceipt(l.Key("key"), 4)
	assert.Equal(t, Decision{Limit: 5, Remaining: 3, RetryAfter: time.Minute, ResetAfter: time.Minute}, d)
	two.Release()
	two.Release()
	assert.EqualValues(t, 5, left())

	_, part := l.TakeReceipt(l.Key("key"), 3)
	part.Refund(1)
	assert.EqualValues(t, 2, left(), "of a part nothing comes back")
	part.Refund(2)
	assert.EqualValues(t, 5, left(), "until all of it does")

	_, reset := l.TakeReceipt(l.Key("key"), 1)
	l.Reset(l.Key("key"))
	_, again := l.TakeReceipt(l.Key("key"), 4)
	reset.Release()
	assert.EqualValues(t, 1, left())
	require.NoError(t, l.SetPolicy(Concurrency(3, time.Minute), Concurrency(8, time.Minute)))
	assert.EqualValues(t, 0, left())
	assert.True(t, l.TakeKey(l.Key("key").Tier(1), 4).Allowed, "4 of another tier's 8 are taken")
	again.Release()
	assert.EqualValues(t, 0, left(), "4 of 3")
	l.Refund(l.Key("key"), 4)
	assert.EqualValues(t, 3, left())

	_, late := l.TakeReceipt(l.Key("key"), 1)
	now = now.Add(time.Minute + time.Microsecond) // the changes of the policy moved the time by some nanoseconds
	l.Sweep()
	assert.EqualValues(t, 3, left())
	_, next := l.TakeReceipt(l.Key("key"), 2)
	late.Release()
	assert.EqualValues(t, 1, left())
	assert.EqualValues(t, 1, l.Stats().Forgotten)
	copied := filepath.Join(folder, "copy")
	require.NoError(t, CopyShared(path, copied))
	other, err := New(Concurrency(3, time.Minute), Shared(copied), MaxKeys(100), ClockFunc(func() time.Time { return now }), Tiers(Concurrency(8, time.Minute)))
	require.NoError(t, err)
	defer other.Close()
	assert.EqualValues(t, 3, other.Peek(other.Key("key"), 1).Remaining, "who holds it holds it in the other file")
	next.Release()
	l.Sweep()
	assert.Zero(t, l.Stats().Keys)
	allocations := testing.AllocsPerRun(100, func() {
		_, e := l.TakeReceipt(l.Key("key"), 1)
		e.Release()
	})
	assert.Zero(t, allocations)
}

// TestSharedInFlightWithoutRoom: without a free entry or slot, requests are refused, and no record is evicted.
func TestSharedInFlightWithoutRoom(t *testing.T) {
	l, err := New(Concurrency(atomicbucket.MaxInFlight, time.Hour), Shared(filepath.Join(t.TempDir(), "table")), MaxKeys(1), Shards(1))
	require.NoError(t, err)
	defer l.Close()
	var held []Receipt
	for i := range spareEntries { // a table for one key has almost no slots
		d, e := l.TakeReceipt(l.Key("key "+strconv.Itoa(i%2)), 1)
		require.True(t, d.Allowed, i)
		held = append(held, e)
	}
	d, _ := l.TakeReceipt(l.Key("key 0"), 1)
	assert.False(t, d.Allowed)
	assert.EqualValues(t, 1, l.Stats().NoRoom)
	held[7].Release()
	d, _ = l.TakeReceipt(l.Key("key 0"), 1)
	assert.True(t, d.Allowed)
	for i := range held {
		held[i].Release()
	}
	for i := range 100 {
		l.TakeReceipt(l.Key("other "+strconv.Itoa(i)), 1)
	}
	assert.Zero(t, l.Stats().Evictions)
	assert.Positive(t, l.Stats().NoRoom)
}
