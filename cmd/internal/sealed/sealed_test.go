package sealed

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// TestSealed: a process that has the key, and uses the same purpose, can open an id. The id has none of its content in
// clear text.
func TestSealed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("k", 32)), 0o600))
	a, err := FromFile("use", file)
	require.NoError(t, err)
	b, err := FromFile("use", file)
	require.NoError(t, err)
	expires := time.Unix(1_800_000_000, 5)
	id := a.Seal([]byte("a receipt"), expires)
	require.NotEqual(t, id, a.Seal([]byte("a receipt"), expires))
	o, err := b.Open(id)
	require.NoError(t, err)
	require.Equal(t, "a receipt", string(o.Receipt))
	require.True(t, expires.Equal(o.Expires))
	require.NotContains(t, id, "receipt")
	other, err := FromFile("another use", file)
	require.NoError(t, err)
	for _, s := range []*Sealer{other, New("use")} {
		_, err := s.Open(id)
		require.ErrorIs(t, err, ErrForged)
	}
	for i := range len(id) { // changes each letter
		changed := []byte(id)
		if changed[i] = 'A'; id[i] == 'A' {
			changed[i] = 'B'
		}
		_, err := a.Open(string(changed))
		require.ErrorIs(t, err, ErrForged, i)
		_, err = a.Open(id[:i])
		require.ErrorIs(t, err, ErrForged, i)
	}
}

// TestUses: if an id is used many times concurrently, exactly one use is reported as First. A use after the id's
// lifetime is reported as Late, but only once per lifetime.
func TestUses(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	u, err := NewUses(time.Minute, 100, engine.ClockFunc(clock))
	require.NoError(t, err)
	defer u.Close()
	u.WithClock(clock)
	s := New("x")
	use := func(o Opened) Use {
		t.Helper()
		got, err := u.Use(context.Background(), o)
		require.NoError(t, err)
		return got
	}
	open := func(asked time.Duration) Opened {
		o, err := s.Open(s.Seal(nil, u.Expires(asked)))
		require.NoError(t, err)
		return o
	}
	for asked, want := range map[time.Duration]time.Duration{0: time.Minute, time.Second: time.Second, time.Hour: time.Minute, -1: time.Minute} {
		require.Equal(t, want, open(asked).Expires.Sub(now))
	}
	o, soon := open(0), open(time.Second)
	var first atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := u.Use(context.Background(), o); assert.NoError(t, err) && got == First {
				first.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, first.Load())
	now = now.Add(time.Second)
	require.Equal(t, Late, use(soon))
	require.Equal(t, Repeated, use(soon))
	for range 200 {
		now = now.Add(time.Second)
		require.NotEqual(t, First, use(o))
	}
	for _, lifetime := range []time.Duration{0, time.Second - 1, 24*time.Hour + 1} {
		_, err := NewUses(lifetime, 100)
		require.ErrorContains(t, err, "want 1s to 24h0m0s")
		_, err = NewStoredUses(lifetime, nil)
		require.ErrorContains(t, err, "want 1s to 24h0m0s")
	}
	_, err = NewUses(time.Minute, 0)
	require.Error(t, err)
}

// TestUsesWithoutRoom: if there is no room for an id, its first use and its later uses are reported as NoRoom. No use
// of this id is reported as First.
func TestUsesWithoutRoom(t *testing.T) {
	u, err := NewUses(time.Minute, 1)
	require.NoError(t, err)
	defer u.Close()
	s := New("x")
	first, full := 0, 0
	for range 100 {
		o, err := s.Open(s.Seal(nil, u.Expires(0)))
		require.NoError(t, err)
		got, err := u.Use(context.Background(), o)
		require.NoError(t, err)
		again, err := u.Use(context.Background(), o)
		require.NoError(t, err)
		require.NotEqual(t, First, again)
		switch got {
		case First:
			first++
			require.Equal(t, Repeated, again)
		case NoRoom:
			full++
			require.Equal(t, NoRoom, again)
		}
	}
	require.Positive(t, first)
	require.Positive(t, full)
	expired, err := s.Open(s.Seal(nil, time.Now().Add(-time.Second)))
	require.NoError(t, err)
	got, err := u.Use(context.Background(), expired)
	require.NoError(t, err)
	require.Equal(t, Late, got, "which it is with room and without")
}

// FuzzOpen checks that no text can be opened as an id unless it was sealed.
func FuzzOpen(f *testing.F) {
	s := New("x")
	f.Add(s.Seal([]byte("a receipt"), time.Unix(1, 1)))
	f.Add("")
	f.Fuzz(func(t *testing.T, id string) {
		if o, err := s.Open(id); err == nil {
			require.Equal(t, "a receipt", string(o.Receipt))
		}
	})
}
