package engine

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	sharedKeys  = 64
	sharedBurst = 500
	decisions   = sharedKeys     // word that counts decisions; each word before it counts the tokens of a key
	stopped     = sharedKeys + 1 // word that says whether all processes must stop
	changes     = sharedKeys + 2 // word for the number of changes of the policy
	tallyWords  = sharedKeys + 3
)

// frozen is a clock that stands still at the same time in all processes.
func frozen() time.Time { return time.Unix(1_800_000_000, 0) }

func sharedLimiter(path string, options ...Option) (*Limiter, error) {
	return New(TokenBucket(PerSecond(1), sharedBurst), append([]Option{
		Shared(path), ClockFunc(frozen), MaxKeys(1000), SweepInterval(time.Millisecond),
	}, options...)...)
}

func tally(t testing.TB, path string) *[tallyWords]atomic.Uint64 {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(tallyWords*8))
	mapped, err := unix.Mmap(int(f.Fd()), 0, tallyWords*8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Munmap(mapped)) })
	return (*[tallyWords]atomic.Uint64)(unsafe.Pointer(&mapped[0]))
}

// TestSharedWorker is the program of a worker: it takes from all keys, makes and forgets other records, and sweeps
// until the test stops it.
func TestSharedWorker(t *testing.T) {
	path := os.Getenv("WEIR_TEST_SHARED")
	if path == "" {
		t.Skip("a process of TestSharedProcesses runs this")
	}
	counts := tally(t, path+".tally")
	l, err := workersLimiter(path)
	require.NoError(t, err)
	defer l.Close()
	fmt.Println("ready")
	var working sync.WaitGroup
	for range 2 {
		working.Go(func() {
			for counts[stopped].Load() == 0 {
				i := rand.IntN(sharedKeys)
				if l.Allow("key " + strconv.Itoa(i)) {
					counts[i].Add(1)
				}
				other := "other " + strconv.Itoa(rand.IntN(100))
				l.Allow(other)
				l.Reset(l.Key(other))
				counts[decisions].Add(1)
			}
		})
	}
	working.Wait()
}

func worker(t *testing.T, path string) *exec.Cmd { return processOf(t, "TestSharedWorker", path) }

func processOf(t *testing.T, test, path string) *exec.Cmd {
	program, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), program, "-test.run=^"+test+"$")
	command.Env = append(os.Environ(), "WEIR_TEST_SHARED="+path)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	ready := make([]byte, len("ready\n"))
	_, err = io.ReadFull(out, ready)
	require.NoError(t, err)
	require.Equal(t, "ready\n", string(ready))
	return command
}

// TestSharedProcesses: while time stands still, processes together admit exactly the burst of each key.
func TestSharedProcesses(t *testing.T) {
	for _, n := range []int{2, 4} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "table")
			counts := tally(t, path+".tally")
			workers := make([]*exec.Cmd, n)
			for i := range workers {
				workers[i] = worker(t, path)
			}
			l, err := sharedLimiter(path)
			require.NoError(t, err)
			defer l.Close()
			stopWhenDrained(t, l, counts, workers)
			for i := range sharedKeys {
				assert.EqualValues(t, sharedBurst, counts[i].Load(), "key %d", i)
			}
			for i := range sharedKeys {
				assert.False(t, l.Allow("key "+strconv.Itoa(i)), "a process that comes later finds the bucket as it was")
			}
		})
	}
}

// killsOf returns how often a test kills a process: WEIR_TEST_KILLS times, or a dozen times by default.
func killsOf(t *testing.T) int {
	text := os.Getenv("WEIR_TEST_KILLS")
	if text == "" {
		return 12
	}
	kills, err := strconv.Atoi(text)
	require.NoError(t, err)
	return kills
}

// TestSharedProcessesKilled: if processes are killed at any instruction, no key gets more than its burst, and no
// process hangs.
func TestSharedProcessesKilled(t *testing.T) {
	kills, path := killsOf(t), filepath.Join(t.TempDir(), "table")
	counts := tally(t, path+".tally")
	workers := []*exec.Cmd{worker(t, path), worker(t, path)}
	survivor, err := sharedLimiter(path)
	require.NoError(t, err)
	defer survivor.Close()
	for i := range kills {
		for until := counts[decisions].Load() + rand.Uint64N(1000); counts[decisions].Load() < until; {
			runtime.Gosched()
		}
		w := i % len(workers)
		require.NoError(t, workers[w].Process.Signal(syscall.SIGKILL))
		assert.ErrorContains(t, workers[w].Wait(), "killed")
		survivor.Sweep()
		if o := survivor.table.Occupancy(); o.Claimed+o.Tentative > 4 {
			assert.Fail(t, "more slots are taken than the processes that live have calls", "%+v after kill %d", o, i)
		}
		workers[w] = worker(t, path)
	}
	stopWhenDrained(t, survivor, counts, workers)
	for i := range sharedKeys {
		got := counts[i].Load()
		assert.LessOrEqual(t, got, uint64(sharedBurst), "key %d", i)
		assert.GreaterOrEqual(t, got+2*uint64(kills), uint64(sharedBurst), "key %d", i)
	}
	survivor.Sweep()
	o := survivor.table.Occupancy()
	assert.Zero(t, o.Claimed+o.Tentative, "%+v", o)
}

// TestSharedProcessStopped: while one process is suspended, the other decides and sweeps, and each key gets exactly its
// burst.
func TestSharedProcessStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	counts := tally(t, path+".tally")
	workers := []*exec.Cmd{worker(t, path), worker(t, path)}
	l, err := sharedLimiter(path)
	require.NoError(t, err)
	defer l.Close()
	more := func(n uint64) {
		for until := counts[decisions].Load() + n; counts[decisions].Load() < until; {
			runtime.Gosched()
		}
	}
	for i := range 20 {
		more(rand.Uint64N(1000))
		still := workers[i%len(workers)].Process.Pid
		require.NoError(t, syscall.Kill(still, syscall.SIGSTOP))
		var status unix.WaitStatus
		_, err := unix.Wait4(still, &status, unix.WUNTRACED, nil)
		require.NoError(t, err)
		require.True(t, status.Stopped(), "%#x", status)
		more(2000)
		l.Sweep()
		require.NoError(t, syscall.Kill(still, syscall.SIGCONT))
	}
	stopWhenDrained(t, l, counts, workers)
	for i := range sharedKeys {
		assert.EqualValues(t, sharedBurst, counts[i].Load(), "key %d", i)
	}
}

// stopWhenDrained waits until all tokens of all keys are taken, and then until all processes have ended.
func stopWhenDrained(t *testing.T, l *Limiter, counts *[tallyWords]atomic.Uint64, workers []*exec.Cmd) {
	for i := range sharedKeys {
		for l.Peek(l.Key("key "+strconv.Itoa(i)), 1).Remaining > 0 {
			runtime.Gosched()
		}
	}
	counts[stopped].Store(1)
	for _, w := range workers {
		require.NoError(t, w.Wait())
	}
}

func TestSharedAcrossRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	for i := range 3 {
		l, err := sharedLimiter(path)
		require.NoError(t, err)
		d := l.Take("key", 100)
		assert.Equal(t, Decision{Allowed: true, Limit: sharedBurst, Remaining: uint64(400 - 100*i),
			ResetAfter: time.Duration(100*(i+1)) * time.Second}, d)
		assert.EqualValues(t, 499-i, l.TakeKey(l.KeyUint64(7), 1).Remaining)
		require.NoError(t, l.Close())
	}
}

// TestSharedByTheMachinesClock: limiters of one file with different clocks agree on the time and take from the same
// bucket.
func TestSharedByTheMachinesClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	var limiters []*Limiter
	for _, option := range []Option{ClockTSC(), ClockPrecise(), ClockCoarse()} {
		l, err := New(TokenBucket(Per(1, 24*time.Hour), 10), Shared(path), MaxKeys(100), option)
		require.NoError(t, err)
		defer l.Close()
		limiters = append(limiters, l)
	}
	before := limiters[0].clock.exactNanos()
	for _, l := range limiters {
		assert.GreaterOrEqual(t, l.clock.exactNanos(), before-int64(15*time.Millisecond))
		assert.LessOrEqual(t, l.clock.exactNanos(), limiters[1].clock.exactNanos()+int64(15*time.Millisecond))
	}
	for range 3 {
		for _, l := range limiters {
			assert.True(t, l.Allow("key"))
		}
	}
	assert.False(t, limiters[0].TakeKey(limiters[0].Key("key"), 2).Allowed, "of ten they have taken nine")
}

// TestSharedFilesThatAreRefused: the error says what is wrong with the file, or which field differs, and what to do.
func TestSharedFilesThatAreRefused(t *testing.T) {
	policy := TokenBucket(PerSecond(5), 10)
	table := func(path string, options ...Option) error {
		l, err := New(policy, append([]Option{Shared(path), MaxKeys(100)}, options...)...)
		if err != nil {
			return err
		}
		return l.Close()
	}
	changed := func(at int64, bytes ...byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			require.NoError(t, table(path))
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			defer f.Close()
			_, err = f.WriteAt(bytes, at)
			require.NoError(t, err)
		}
	}
	swapped := binary.NativeEndian.AppendUint64(nil, 0x0807060504030201)
	for name, c := range map[string]struct {
		make    func(t *testing.T, path string)
		options []Option
		want    string
	}{
		"a folder":               {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, nil, "not a regular file"},
		"a symbolic link":        {func(t *testing.T, path string) { require.NoError(t, os.Symlink(path+"2", path)) }, nil, "symbolic link"},
		"a pipe":                 {func(t *testing.T, path string) { require.NoError(t, unix.Mkfifo(path, 0o600)) }, nil, "not a regular file"},
		"a socket":               {func(t *testing.T, path string) { listenUnix(t, path) }, nil, "not a regular file"},
		"a folder for everybody": {func(t *testing.T, path string) { require.NoError(t, os.Chmod(filepath.Dir(path), 0o777)) }, nil, "chmod o-w"},
		"an empty file":          {func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) }, nil, "not the file of a shared table"},
		"a foreign file":         {func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, make([]byte, 1<<16), 0o600)) }, nil, "not the file of a shared table"},
		"a shorter file":         {func(t *testing.T, path string) { resized(t, table(path), path, -1) }, nil, "its header says"},
		"a longer file":          {func(t *testing.T, path string) { resized(t, table(path), path, 1) }, nil, "its header says"},
		"another mode": {func(t *testing.T, path string) {
			require.NoError(t, table(path))
			require.NoError(t, os.Chmod(path, 0o640))
		}, nil, "want 0600"},
		"no permission":    {func(t *testing.T, path string) { unreadable(t, table(path), path) }, nil, "must be readable and writable"},
		"another layout":   {changed(16, 99), nil, "layout: the file has version 99, this program has version 8"},
		"other byte order": {changed(8, swapped...), nil, "byte order"},
		"no byte order":    {changed(8, 0), nil, "byte order"},
		"a damaged header": {changed(200, 'x'), nil, "checksum"},
		"another burst": {func(t *testing.T, path string) {
			l, err := New(TokenBucket(PerSecond(5), 11), Shared(path), MaxKeys(100))
			require.NoError(t, err)
			require.NoError(t, l.Close())
		}, nil, `policy: the file has "token bucket 5/s burst 11`},
		"more keys":        {func(t *testing.T, path string) { require.NoError(t, table(path)) }, []Option{MaxKeys(101)}, `MaxKeys: the file has "100", this process wants "101"`},
		"another hash":     {func(t *testing.T, path string) { require.NoError(t, table(path)) }, []Option{HashStable()}, "hash: the file has"},
		"another clock":    {func(t *testing.T, path string) { require.NoError(t, table(path)) }, []Option{ClockFunc(frozen)}, "time: the file has"},
		"another overflow": {func(t *testing.T, path string) { require.NoError(t, table(path)) }, []Option{Overflow(Refuse)}, "Overflow: the file has"},
		"a tier": {func(t *testing.T, path string) { require.NoError(t, table(path)) }, []Option{Tiers(TokenBucket(PerSecond(1), 1))},
			`tiers: the file has "0", this process wants "1"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "table")
			c.make(t, path)
			err := table(path, c.options...)
			assert.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, strconv.Quote(path))
		})
	}
	assert.ErrorContains(t, table(filepath.Join(t.TempDir(), "none", "table")), "there is no folder")
	assert.ErrorContains(t, table(""), "want the path of a file")
	path := filepath.Join(t.TempDir(), "table")
	_, err := New(SlidingLog(5, time.Minute), Shared(path))
	assert.ErrorContains(t, err, "logs cannot be shared")
	_, err = os.Stat(path)
	assert.ErrorIs(t, err, os.ErrNotExist, "and no file is made")
	l, err := New(policy, Shared(path), MaxKeys(100))
	require.NoError(t, err)
	defer l.Close()
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	require.NoError(t, err)
	assert.Empty(t, left, "no temporary file is left")
}

func resized(t *testing.T, err error, path string, by int64) {
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, info.Size()+by))
}

func unreadable(t *testing.T, err error, path string) {
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		t.Skip("root reads every file")
	}
	require.NoError(t, os.Chmod(path, 0))
}

func listenUnix(t *testing.T, path string) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Close(fd)) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
}

// TestSharedSeatsOfClosedLimiters: if a file has no place for another limiter, New collects garbage, which frees places
// of closed limiters.
func TestSharedSeatsOfClosedLimiters(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only New runs a garbage collection
	path := filepath.Join(t.TempDir(), "table")
	for range 1100 { // there are 1024 seats
		l, err := sharedLimiter(path)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}

// TestSharedFileOnAFullDisk: New allocates the complete file at once, or returns an error and leaves no file.
func TestSharedFileOnAFullDisk(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("no table of this machine is larger than a disk")
	}
	large, dir := uint64(1)<<40, t.TempDir()
	_, err := New(TokenBucket(PerSecond(5), 10), Shared(filepath.Join(dir, "table")), MaxKeys(int(large)))
	assert.ErrorContains(t, err, "allocate")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}
