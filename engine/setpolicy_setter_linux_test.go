package engine

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sharedfile"
)

// TestAQuotaBesideASetterThatIsStopped: while another process changes the policy, Quota waits, and returns an error if
// the change takes too long.
func TestAQuotaBesideASetterThatIsStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	synctest.Test(t, func(t *testing.T) { // the wait is in the bubble's time
		attach := func() *Limiter {
			l, err := New(TokenBucket(PerSecond(1), 10), Shared(path), MaxQuota(10), ClockFunc(frozen), MaxKeys(100))
			require.NoError(t, err)
			return l
		}
		one, other := attach(), attach()
		defer one.Close()
		defer other.Close()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		defer f.Close()
		const setting = 88
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, other.background.file.Claimant()), sharedfile.HeaderBytes+setting)
		require.NoError(t, err)
		large := TokenBucket(Per(1, time.Hour), 100)
		_, err = one.Quota(large)
		require.EqualError(t, err, "engine: Quota(token bucket 1/h burst 100): another process has been about to change the policy "+
			"of the file for 5s: is it stopped?")
		_, err = one.Quota(TokenBucket(Per(1, time.Hour), 10))
		require.NoError(t, err, "a small one has room whatever the policy")
		_, err = f.WriteAt(make([]byte, 8), sharedfile.HeaderBytes+setting)
		require.NoError(t, err)
		_, err = one.Quota(large)
		require.NoError(t, err)
	})
}
