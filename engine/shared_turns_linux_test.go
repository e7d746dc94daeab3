package engine

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A way is one of two implementations that a benchmark compares.
type way struct {
	name  string
	round func() time.Duration
}

// byTurns alternates rounds of two ways, and reports the fastest rounds, which other load does not affect.
func byTurns(b *testing.B, first, second way) {
	ways, least := [2]way{first, second}, [2]time.Duration{noRound, noRound}
	for b.Loop() {
		for i, w := range ways {
			least[i] = min(least[i], w.round())
		}
	}
	for i, w := range ways {
		require.Less(b, least[i], noRound, "%s: no round counts: the machine is too busy, or has one core", w.name)
		b.ReportMetric(float64(least[i].Nanoseconds())/roundDecisions, w.name+"-ns")
	}
	b.ReportMetric(float64(least[1])/float64(least[0]), "ratio")
}

const (
	roundDecisions = 10_000
	manyKeys       = 10 * roundDecisions
	noRound        = time.Duration(math.MaxInt64) // the time of a round that does not count
)

// A decider makes rounds of decisions for one key, or for many keys in turn. No request is refused.
type decider struct {
	limiter *Limiter
	keys    []string
	hashed  []Key
	at      int // index in keys at which the next round begins
}

// newDecider returns a decider for "one" key or "many" keys.
func newDecider(l *Limiter, of string, at int) *decider {
	d := &decider{l, make([]string, manyKeys), make([]Key, manyKeys), at}
	for i := range d.keys {
		d.keys[i] = "192.168.100.200"
		if of == "many" {
			d.keys[i] = "192.168." + strconv.Itoa(i)
		}
		d.hashed[i] = l.Key(d.keys[i])
	}
	return d
}

func (d *decider) decide(tb testing.TB, decisions int) {
	for _, k := range d.keys[d.at : d.at+decisions] {
		if !d.limiter.Allow(k) {
			tb.Error("a request is refused") // only the goroutine of the test may call FailNow
		}
	}
	d.at = (d.at + decisions) % len(d.keys)
}

func (d *decider) alone(tb testing.TB) time.Duration {
	begin := time.Now()
	d.decide(tb, roundDecisions)
	return time.Since(begin)
}

type span struct{ begin, end int64 }

// together makes a round at the same time as another decider.
func (d *decider) together(tb testing.TB, here *atomic.Uint64) (s span) {
	for both := (here.Add(1) + 1) &^ 1; here.Load() < both; {
	}
	s.begin = machineTime(tb)
	d.decide(tb, roundDecisions)
	s.end = machineTime(tb)
	return s
}

// both returns the time that two rounds took together, or noRound if they hardly overlapped. The decisions of one round
// alone are faster.
func both(s, t span) time.Duration {
	took, shared := max(s.end, t.end)-min(s.begin, t.begin), min(s.end, t.end)-max(s.begin, t.begin)
	if shared < took/10*9 {
		return noRound
	}
	return time.Duration(took)
}

func machineTime(tb testing.TB) int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		tb.Error(err)
	}
	return now.Nano()
}

func roundLimiter(tb testing.TB, options ...Option) *Limiter {
	l, err := New(TokenBucket(PerSecond(1e9), 1<<32-1), append(options, MaxKeys(2*manyKeys))...)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = l.Close() })
	return l
}

// TestSharedPartner is the second process of BenchmarkSharedProcesses.
func TestSharedPartner(t *testing.T) {
	path := os.Getenv("WEIR_TEST_PARTNER")
	if path == "" {
		t.Skip("BenchmarkSharedProcesses runs this")
	}
	here, l, deciders := &tally(t, path+".tally")[0], roundLimiter(t, Shared(path)), map[string]*decider{}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		of := lines.Text()
		if deciders[of] == nil {
			deciders[of] = newDecider(l, of, manyKeys/2)
		}
		s := deciders[of].together(t, here)
		fmt.Println(s.begin, s.end)
	}
}

// BenchmarkSharedProcesses compares two concurrent processes with two goroutines of one process. It needs two cores.
func BenchmarkSharedProcesses(b *testing.B) {
	path := filepath.Join(b.TempDir(), "table")
	here, l := &tally(b, path+".tally")[0], roundLimiter(b, Shared(path))
	program, err := os.Executable()
	require.NoError(b, err)
	partner := exec.CommandContext(b.Context(), program, "-test.run=^TestSharedPartner$")
	partner.Env = append(os.Environ(), "WEIR_TEST_PARTNER="+path)
	partner.Stderr = os.Stderr
	in, err := partner.StdinPipe()
	require.NoError(b, err)
	out, err := partner.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, partner.Start())
	lines := bufio.NewReader(out)
	for _, of := range []string{"one", "many"} {
		b.Run(of, func(b *testing.B) {
			own, other := newDecider(l, of, 0), newDecider(l, of, manyKeys/2)
			byTurns(b, way{"goroutines", func() time.Duration {
				others := make(chan span)
				go func() { others <- other.together(b, here) }()
				return both(own.together(b, here), <-others)
			}}, way{"processes", func() time.Duration {
				_, err := fmt.Fprintln(in, of)
				require.NoError(b, err)
				s := own.together(b, here)
				var t span
				_, err = fmt.Fscanln(lines, &t.begin, &t.end)
				require.NoError(b, err)
				return both(s, t)
			}})
		})
	}
	require.NoError(b, in.Close())
	_, _ = lines.WriteTo(io.Discard)
	require.NoError(b, partner.Wait())
}

func onDisk(b *testing.B, folder string) {
	const tmpfs = 0x01021994
	var system unix.Statfs_t
	require.NoError(b, unix.Statfs(folder, &system))
	if system.Type == tmpfs {
		b.Skip("TMPDIR is memory: want a folder on a disk")
	}
}

// BenchmarkSharedDisk compares a file on a disk, in TMPDIR, with a file in /dev/shm.
func BenchmarkSharedDisk(b *testing.B) {
	disk := b.TempDir()
	onDisk(b, disk)
	memory, err := os.MkdirTemp("/dev/shm", "weir-bench-")
	require.NoError(b, err)
	defer os.RemoveAll(memory)
	inMemory := roundLimiter(b, Shared(filepath.Join(memory, "table")))
	onDisk := roundLimiter(b, Shared(filepath.Join(disk, "table")))
	for _, of := range []string{"one", "many"} {
		b.Run(of, func(b *testing.B) {
			memory, disk := newDecider(inMemory, of, 0), newDecider(onDisk, of, 0)
			byTurns(b, way{"memory", func() time.Duration { return memory.alone(b) }},
				way{"disk", func() time.Duration { return disk.alone(b) }})
		})
	}
}

// BenchmarkSharedWriteBack measures how many bytes per second the system writes to disk for a file. Use a -benchtime of
// minutes, because the system waits for half a minute before it writes a page.
func BenchmarkSharedWriteBack(b *testing.B) {
	for name, pause := range map[string]time.Duration{"10000-a-second": 10 * time.Millisecond, "all-it-can": 0} {
		b.Run(name, func(b *testing.B) {
			disk := b.TempDir()
			onDisk(b, disk)
			d, decisions := newDecider(roundLimiter(b, Shared(filepath.Join(disk, "table"))), "many", 0), 0
			d.decide(b, manyKeys)
			var ticks <-chan time.Time
			if pause > 0 {
				ticks = time.Tick(pause)
			}
			begin, before := time.Now(), writtenBytes(b)
			for b.Loop() {
				if ticks != nil {
					<-ticks
				}
				d.decide(b, 100)
				decisions += 100
			}
			took := time.Since(begin).Seconds()
			b.ReportMetric(float64(decisions)/took, "decisions/s")
			b.ReportMetric(float64(writtenBytes(b)-before)/took, "written-B/s")
		})
	}
}

// writtenBytes returns how many bytes the process has caused the system to write to disks.
func writtenBytes(tb testing.TB) (n int64) {
	text, err := os.ReadFile("/proc/self/io")
	require.NoError(tb, err)
	_, after, found := strings.Cut(string(text), "\nwrite_bytes: ")
	require.True(tb, found)
	_, err = fmt.Sscan(after, &n)
	require.NoError(tb, err)
	return n
}
