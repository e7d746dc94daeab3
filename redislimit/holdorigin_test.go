//go:build unix

package redislimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// TestAHoldOfAnotherProcess: a process cannot give back tokens that another process took from its lease or share.
func TestAHoldOfAnotherProcess(t *testing.T) {
	store, err := Open(t.Context(), redistest.Start(t).URL())
	require.NoError(t, err)
	defer store.Close()
	l, err := New(store, "texts", engine.FixedWindow(100, time.Hour))
	require.NoError(t, err)
	defer l.Close()
	for from, elsewhere := range map[origin]origin{
		fromNowhere: fromNowhere, fromStore: fromStore, fromLease: fromNowhere, fromShare: fromNowhere,
	} {
		h := &Hold{quota: l.ownQuota, key: "k", taken: 5, origin: from}
		text := h.Append(nil)
		parsed, err := l.ParseHold("k", text)
		require.NoError(t, err)
		require.Equal(t, from, parsed.origin)
		for bit := range 64 {
			text[1+bit/8] ^= 1 << (bit % 8)
			parsed, err = l.ParseHold("k", text)
			text[1+bit/8] ^= 1 << (bit % 8)
			require.NoError(t, err)
			require.Equal(t, elsewhere, parsed.origin)
			require.EqualValues(t, 5, parsed.Taken())
		}
	}
}
