package trace

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// add adds requests of all kinds, and returns them.
func add(t *testing.T, trace *Trace, n int) (all []Request) {
	t.Helper()
	random, at := rand.New(rand.NewPCG(1, 2)), int64(1_700_000_000e9)
	for range n {
		r := Request{UnixNano: at, Cost: 1, Key: uint32(random.IntN(1 << random.IntN(31)))}
		switch random.IntN(8) {
		case 0:
			r.Cost = random.Uint64()
		case 1:
			r.Tier = uint8(random.IntN(15))
		case 2:
			r.Refund = true
		case 3:
			at += random.Int64N(1e15)
		case 4, 5:
			at += 1e9 * random.Int64N(1000)
		}
		require.NoError(t, trace.Add(r))
		all = append(all, r)
	}
	return all
}

func read(t *testing.T, trace *Trace) (all []Request) {
	t.Helper()
	reader, r := trace.Read(), Request{}
	for reader.Next(&r) {
		all = append(all, r)
	}
	require.NoError(t, reader.Err())
	return all
}

func TestWhatIsAddedIsReadAgain(t *testing.T) {
	for name, n := range map[string]int{"none": 0, "in memory": 1000, "in a file": 400_000} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			trace := &Trace{}
			want := add(t, trace, n)
			require.Equal(t, n > 1000, trace.file != nil)
			assert.LessOrEqual(t, cap(trace.pending), maxPending+maxRequest, "memory does not grow")
			for range 2 {
				require.Equal(t, want, read(t, trace))
			}
			keys := 0
			for _, r := range want {
				keys = max(keys, int(r.Key)+1)
			}
			assert.Equal(t, keys, trace.Keys)
			assert.Equal(t, uint64(n), trace.Requests)
			require.NoError(t, trace.Close())
			left, err := filepath.Glob(filepath.Join(os.TempDir(), "weir-replay-*"))
			require.NoError(t, err)
			assert.Empty(t, left)
			assert.Empty(t, read(t, trace))
		})
	}
}

func TestATemporaryFileThatCannotBe(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	if os.TempDir() != os.Getenv("TMPDIR") {
		t.Skip("TMPDIR does not name the directory of temporary files here")
	}
	trace := &Trace{}
	var err error
	for range maxPending {
		if err = trace.Add(Request{Cost: 1}); err != nil {
			break
		}
	}
	assert.ErrorContains(t, err, "set TMPDIR")
	assert.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, trace.Close())
}

// TestATemporaryFileThatWasCut: if another program has cut the temporary file, the result is an error, and not a
// shorter log.
func TestATemporaryFileThatWasCut(t *testing.T) {
	trace := &Trace{}
	add(t, trace, 400_000)
	defer trace.Close()
	require.NotNil(t, trace.file)
	require.NoError(t, trace.file.Truncate(trace.written-1))
	reader, n, r := trace.Read(), uint64(0), Request{}
	for reader.Next(&r) {
		n++
	}
	assert.Error(t, reader.Err())
	assert.Less(t, n, trace.Requests)
}
