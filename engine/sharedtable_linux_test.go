package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sharedfile"
)

func look(t *testing.T, path string) *sharedTable {
	table, err := openShared(path)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, table.Close()) })
	return table
}

// TestSharedTableKnowsEveryPolicy: ReadShared returns the policies, tiers and options with which New made the file.
func TestSharedTableKnowsEveryPolicy(t *testing.T) {
	for i, c := range []struct {
		policies []Policy
		options  []Option
		want     []string // options in the file, after MaxKeys, Shards and Overflow
	}{
		{[]Policy{TokenBucket(Per(97.3, time.Minute), 7)}, []Option{ChargeRefusals(ChargePenalty)},
			[]string{"with the file's secret", "the machine's", "0", "0", "2"}},
		{[]Policy{TokenBucket(PerSecond(5), 10), TokenBucket(PerSecond(50), 90), Unlimited(), Blocked()}, []Option{HashStable(), MaxDebt(3)},
			[]string{"xxHash64 (HashStable)", "the machine's", "0", "3", "0"}},
		{[]Policy{BatchRefill(5, time.Second, 100), BatchRefill(5, time.Second, 200)}, []Option{ClockFunc(frozen)},
			[]string{"with the file's secret", "a function's (ClockFunc)", "0", "0", "0"}},
		{[]Policy{FixedWindow(100, time.Hour).Aligned()}, []Option{MaxQuota(200)},
			[]string{"with the file's secret", "the machine's", "200", "0", "0"}},
		{[]Policy{FixedWindow(100, time.Hour)}, nil, nil},
		{[]Policy{SlidingWindow(100, time.Hour)}, nil, nil},
		{[]Policy{Concurrency(100, time.Hour)}, nil, nil},
		{[]Policy{TokenBuckets(time.Hour)}, nil, nil},
		{[]Policy{Unlimited()}, nil, nil},
		{[]Policy{Blocked()}, nil, nil},
	} {
		t.Run(fmt.Sprint(c.policies[0]), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "table")
			overflow := OverflowPolicy(i % 3)
			l, err := New(c.policies[0], append(c.options, Tiers(c.policies[1:]...), Shared(path), MaxKeys(100+i), Overflow(overflow))...)
			require.NoError(t, err)
			defer l.Close()
			h := look(t, path).header()
			assert.Equal(t, c.policies, h.Policies)
			assert.Equal(t, 8, h.Version)
			info, err := os.Stat(path)
			require.NoError(t, err)
			assert.EqualValues(t, info.Size(), h.Bytes)
			assert.False(t, h.Made.After(time.Now().Add(time.Hour)))
			values := []string{strconv.Itoa(100 + i), "1", overflow.String()}
			for i, o := range h.Options {
				if i < 3 {
					assert.Equal(t, values[i], o.Value, o.Name)
				} else if c.want != nil {
					assert.Equal(t, c.want[i-3], o.Value, o.Name)
				}
			}
			assert.Len(t, h.Options, 8)
		})
	}
}

// TestSharedTableFromOutside: ReadShared reports the real keys, sweeps and processes, and does not change a byte of the
// file.
func TestSharedTableFromOutside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	var seconds atomic.Int64
	l, err := New(TokenBucket(PerSecond(1), 10), Shared(path), MaxKeys(1000), SweepInterval(time.Hour),
		ClockFunc(func() time.Time { return frozen().Add(time.Duration(seconds.Load()) * time.Second) }))
	require.NoError(t, err)
	defer l.Close()
	table := look(t, path)
	stats := func() SharedTable {
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		s, err := table.read()
		require.NoError(t, err)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, after))
		assert.Equal(t, l.Stats().Sweeps, s.Stats.Sweeps)
		assert.Equal(t, s.Stats.Slots, s.NeverUsed+s.Free+s.Claimed+s.Tentative+s.Live)
		return s
	}
	s := stats()
	assert.Equal(t, s.Stats.Slots, s.NeverUsed)
	require.Len(t, s.Attached, 1)
	assert.EqualValues(t, os.Getpid(), s.Attached[0].PID)
	assert.Less(t, s.Attached[0].For, time.Hour)
	for i := range 30 {
		l.Take(strconv.Itoa(i), 1+uint64(i%2)*4)
	}
	s = stats()
	assert.EqualValues(t, 30, s.Live)
	assert.EqualValues(t, 30, s.Indebted)
	seconds.Store(3)
	l.Sweep() // frees the slots of keys that are full by now
	s = stats()
	assert.EqualValues(t, 15, s.Indebted)
	assert.EqualValues(t, 15, s.Live)
	assert.EqualValues(t, 15, s.Free)
	assert.EqualValues(t, 15, s.Stats.Reclaimed)
	assert.True(t, s.Swept.Equal(frozen().Add(3*time.Second)), s.Swept)
	assert.True(t, s.At.Equal(s.Swept), s.At)
	again, err := New(TokenBucket(PerSecond(1), 10), Shared(path), MaxKeys(1000), ClockFunc(frozen))
	require.NoError(t, err)
	defer again.Close()
	assert.Len(t, stats().Attached, 2)
}

// TestSharedTableJudgesByTheMachinesClock: ReadShared counts buckets that are full now, not at the last sweep.
func TestSharedTableJudgesByTheMachinesClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	l, err := New(TokenBucket(PerSecond(1000), 1000), Shared(path), MaxKeys(100), SweepInterval(time.Hour))
	require.NoError(t, err)
	defer l.Close()
	table := look(t, path)
	l.Take("a", 1000)
	assert.Eventually(t, func() bool {
		s, err := table.read()
		require.NoError(t, err)
		return s.Live == 1 && s.Indebted == 0
	}, time.Minute, time.Millisecond)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("another boot"), 4096)
	require.NoError(t, err)
	s, err := table.read()
	require.NoError(t, err)
	assert.EqualValues(t, 1, s.Indebted)
	assert.EqualValues(t, l.table.Watermark(), s.At.UnixNano())
}

// TestSharedTableTellsWhoIsAlive: ReadShared no longer reports a killed process as attached.
func TestSharedTableTellsWhoIsAlive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	tally(t, path+".tally")
	w := worker(t, path)
	table := look(t, path)
	s, err := table.read()
	require.NoError(t, err)
	require.Len(t, s.Attached, 1)
	assert.EqualValues(t, w.Process.Pid, s.Attached[0].PID)
	require.NoError(t, w.Process.Signal(syscall.SIGKILL))
	assert.ErrorContains(t, w.Wait(), "killed")
	s, err = table.read()
	require.NoError(t, err)
	assert.Empty(t, s.Attached)
	assert.Equal(t, s.Claimed, s.Deserted, "of the dead alone")
}

// TestSharedTableOfAnyContent: reading is safe if words have any values, or if the file is truncated meanwhile.
func TestSharedTableOfAnyContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	l, err := sharedLimiter(path)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	table := look(t, path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		for range 100 {
			at := 4096 + random.Int64N(int64(table.header().Bytes)-4096)/8*8
			_, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, random.Uint64()), at)
			require.NoError(t, err)
		}
		s, err := table.read()
		require.NoError(t, err)
		assert.Equal(t, s.Stats.Slots, s.NeverUsed+s.Free+s.Claimed+s.Tentative+s.Live)
		assert.LessOrEqual(t, s.Deserted, s.Claimed)
		assert.LessOrEqual(t, s.Indebted, s.Live)
	}
	require.NoError(t, f.Truncate(4096))
	_, err = table.read()
	assert.ErrorContains(t, err, "the file was truncated while it was read")
}

// TestSharedTablesThatAreRefused: the error names the file and says what is wrong with it.
func TestSharedTablesThatAreRefused(t *testing.T) {
	header := func(change func(fields []sharedfile.Field) []sharedfile.Field) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			var c config
			for _, o := range []Option{MaxKeys(100), Shards(1)} {
				require.NoError(t, o(&c))
			}
			nothing := func([]byte) error { return nil }
			f, err := sharedfile.Open(path, sharedfile.Spec{
				Fields: change(c.fields(newPolicySet(TokenBucket(PerSecond(5), 10), nil))), Bytes: 4096, Begin: nothing,
				Settle: func([]byte, func() bool) error { return nil }, Mark: func([]byte) (int64, error) { return 0, nil },
			})
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	// numbers returns a function that makes a table whose policies do not match its header.
	numbers := func(change func(numbers []uint64) []uint64) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			c := config{maxKeys: 100, shards: 1, sharedPath: path}
			ps := newPolicySet(TokenBucket(PerSecond(5), 10), nil)
			layout, err := c.layoutFor(ps)
			require.NoError(t, err)
			bytes, err := layout.SharedBytes()
			require.NoError(t, err)
			f, err := sharedfile.Open(path, sharedfile.Spec{
				Fields: c.fields(ps), Bytes: bytes, Settle: layout.Settle, Mark: layout.Mark,
				Begin: func(memory []byte) error { return layout.Begin(memory, change(ps.numbers())) },
			})
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	number := func(i int, number uint64) func(t *testing.T, path string) {
		return numbers(func(n []uint64) []uint64 { n[i], n[i+policyNumbers] = number, number; return n })
	}
	field := func(i int, value string) func(t *testing.T, path string) {
		return header(func(fields []sharedfile.Field) []sharedfile.Field { fields[i].Value = value; return fields })
	}
	wrongMode := "want 0600"
	if os.Geteuid() == 0 { // root may read any user's file
		wrongMode = "not the file of a shared table"
	}
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want string
	}{
		"none":            {func(*testing.T, string) {}, "no such file"},
		"a folder":        {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "not a regular file"},
		"a symbolic link": {func(t *testing.T, path string) { require.NoError(t, os.Symlink(path+"2", path)) }, "symbolic link"},
		"a socket":        {func(t *testing.T, path string) { listenUnix(t, path) }, "not a regular file"},
		"empty":           {func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) }, "not the file of a shared table"},
		"foreign":         {func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, make([]byte, 1<<16), 0o600)) }, "not the file of a shared table"},
		"another mode":    {func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o644)) }, wrongMode},
		"truncated": {func(t *testing.T, path string) {
			l, err := sharedLimiter(path)
			require.NoError(t, err)
			resized(t, l.Close(), path, -4096)
		}, "its header says"},
		"another length":   {header(func(fields []sharedfile.Field) []sharedfile.Field { return fields }), "a table of its numbers has"},
		"no fields":        {header(func([]sharedfile.Field) []sharedfile.Field { return nil }), "algorithm: the file has none"},
		"fewer fields":     {header(func(fields []sharedfile.Field) []sharedfile.Field { return fields[:9] }), "tiers: the file has none"},
		"an unknown field": {header(func(fields []sharedfile.Field) []sharedfile.Field { return append(fields, sharedfile.Field{Name: "x"}) }), "no limiter of this program writes"},
		"a log": {numbers(func([]uint64) []uint64 { return newPolicySet(SlidingLog(5, time.Second), nil).numbers() }),
			"no limiter of this program writes"},
		"no policy":          {number(0, 7), "begins with 0x7"},
		"no grant":           {number(0, 1|4<<grantShift), "begins with 0x401"},
		"no alignment":       {number(0, 1|2<<alignedShift), "begins with 0x20001"},
		"unlimited by rate":  {number(0, uint64(grantsAll)<<grantShift), "begins with 0x100"},
		"quotas of a rate":   {number(0, 1|uint64(grantsQuotas)<<grantShift), "begins with 0x301"},
		"no numbers":         {numbers(func([]uint64) []uint64 { return nil }), "policies of 0 numbers"},
		"a base alone":       {numbers(func(n []uint64) []uint64 { return n[:policyNumbers] }), "policies of 7 numbers"},
		"half a policy":      {numbers(func(n []uint64) []uint64 { return n[:9] }), "policies of 9 numbers"},
		"too many tiers":     {numbers(func(n []uint64) []uint64 { return slices.Repeat(n, 9) }), "16 tiers: want at most 14"},
		"another kind":       {number(0, uint64(AlgorithmFixedWindow)), "fixed window"},
		"a rate of nothing":  {number(1, 0), "the file's policy"},
		"a rate of no count": {number(1, math.Float64bits(math.NaN())), "the file's policy"},
		"two policies":       {numbers(func(n []uint64) []uint64 { n[3], n[6] = n[3]+1, n[6]+1; return n }), "policy token bucket 5/s burst 10 of a limiter of"},
		"more tiers":         {numbers(func(n []uint64) []uint64 { return append(n, n[:policyNumbers]...) }), `tiers: the file has "0"`},
		"no algorithm":       {field(0, "leaky bucket"), "a table of its numbers has"},
		"keys":               {field(1, "0"), "MaxKeys(0)"},
		"too many keys":      {field(1, "72057594037927936"), map[int]string{64: "a table of its numbers has", 32: "out of range"}[strconv.IntSize]},
		"shards":             {field(2, "3"), "Shards(3)"},
		"overflow":           {field(3, "burst"), "want engine.Evict"},
		"debt":               {field(7, "x"), "invalid syntax"},
		"refusals":           {field(8, "259"), "want engine.ChargeNothing"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "table")
			c.make(t, path)
			_, err := ReadShared(path)
			assert.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, strconv.Quote(path))
		})
	}
}
