//go:build unix

package redislimit_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

func hashOf(t *testing.T, c *redislimit.Client, name string, during func(n int)) (values map[string]string, err error) {
	t.Helper()
	values = map[string]string{}
	n := 0
	err = c.Hash(t.Context(), name, func(field, value string) error {
		values[field] = value
		if n++; during != nil {
			during(n)
		}
		return nil
	})
	return values, err
}

// TestHash: every field of a hash is read, for each size and encoding.
func TestHash(t *testing.T) {
	server := redistest.Start(t)
	c := patient(t, server.URL())
	for _, n := range []int{0, 1, 3, 5000} {
		name, want := fmt.Sprint("plans:", n), map[string]string{}
		words := []string{"HSET", name}
		for i := range n {
			field, value := fmt.Sprint("key ", i), fmt.Sprint(i, "/s")
			want[field], words = value, append(words, field, value)
		}
		if n > 0 {
			server.Do(words...)
		}
		got, err := hashOf(t, c, name, nil)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	stop := errors.New("stop")
	seen := 0
	err := c.Hash(t.Context(), "plans:5000", func(string, string) error { seen++; return stop })
	require.ErrorIs(t, err, stop)
	assert.NotErrorIs(t, err, redislimit.ErrStore)
	assert.Equal(t, 1, seen)
}

// TestAHashThatIsReplaced: if RENAME replaces the hash during the call, the fields that are in both hashes are read.
func TestAHashThatIsReplaced(t *testing.T) {
	server := redistest.Start(t)
	c := patient(t, server.URL())
	fill := func(name string, n int) {
		words := []string{"HSET", name}
		for i := range n {
			words = append(words, fmt.Sprint("key ", i), name)
		}
		server.Do(words...)
	}
	for _, sizes := range [][2]int{{5000, 20_000}, {20_000, 5000}, {20_000, 20_000}} {
		fill("plans", sizes[0])
		fill("next", sizes[1])
		got, err := hashOf(t, c, "plans", func(n int) {
			if n == 2500 {
				server.Do("RENAME", "next", "plans")
			}
		})
		require.NoError(t, err)
		for i := range min(sizes[0], sizes[1]) {
			_, ok := got[fmt.Sprint("key ", i)]
			require.True(t, ok, "key %d of %v", i, sizes)
		}
		server.Do("DEL", "plans")
	}
}

// TestAHashThatIsNot: Hash returns an error if it cannot read a hash.
func TestAHashThatIsNot(t *testing.T) {
	server := redistest.Start(t)
	c := patient(t, server.URL())
	server.Do("SET", "text", "a")
	_, err := hashOf(t, c, "text", nil)
	require.ErrorIs(t, err, redislimit.ErrStore)
	assert.ErrorContains(t, err, `Hash("text")`)
	assert.ErrorContains(t, err, "WRONGTYPE")

	server.Do("HSET", "plans", "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = c.Hash(ctx, "plans", func(string, string) error { return nil })
	require.ErrorIs(t, err, context.Canceled)

	server.Stop()
	_, err = hashOf(t, c, "plans", nil)
	require.ErrorIs(t, err, redislimit.ErrStore)

	later, err := redislimit.Open(t.Context(), server.URL(), redislimit.JoinLater(), redislimit.Timeout(time.Second))
	require.NoError(t, err)
	defer later.Close()
	err = later.Hash(t.Context(), "plans", func(string, string) error { return nil })
	require.ErrorIs(t, err, redislimit.ErrStore)
	assert.ErrorContains(t, err, "it has not answered yet")
}

// TestAHashThatIsNotWhole: Hash returns an error if fields are missing.
func TestAHashThatIsNotWhole(t *testing.T) {
	server := redistest.Start(t)
	c := patient(t, server.URL())
	words := []string{"HSET", "plans"}
	for i := range 10_000 {
		words = append(words, fmt.Sprint("key ", i), "a")
	}
	server.Do(words...)
	n := 0
	err := c.Hash(t.Context(), "plans", func(_, value string) error {
		switch n++; {
		case n == 2000: // another hash answers, as another server would
			server.Do("RENAME", "plans", "other")
			server.Do("HSET", "plans", "key 0", "small")
		case value == "small":
			server.Do("RENAME", "other", "plans")
		}
		return nil
	})
	require.ErrorIs(t, err, redislimit.ErrStore)
	assert.ErrorContains(t, err, "fields were read of 10000")
}

// TestAHashOfTwoServers: Hash returns an error if another server, with another order of fields, begins to answer.
func TestAHashOfTwoServers(t *testing.T) {
	first, second := redistest.Start(t), redistest.Start(t)
	words := []string{"HSET", "plans"}
	for i := range 10_000 {
		words = append(words, fmt.Sprint("key ", i), "a")
	}
	first.Do(words...)
	second.Do(words...)
	var now atomic.Pointer[redistest.Server]
	now.Store(first)
	redis, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{first.Addr()}, DisableCache: true,
		DialCtxFn: func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", now.Load().Addr())
		},
	})
	require.NoError(t, err)
	defer redis.Close()
	c, err := redislimit.NewClient(redis)
	require.NoError(t, err)
	defer c.Close()
	got, err := hashOf(t, c, "plans", func(n int) {
		if n == 5000 {
			now.Store(second)
			first.Do("CLIENT", "KILL", "TYPE", "normal")
		}
	})
	require.ErrorIs(t, err, redislimit.ErrStore, "%d different fields came", len(got))
	got, err = hashOf(t, c, "plans", nil)
	require.NoError(t, err)
	assert.Len(t, got, 10_000)
}

// TestAHashOfACluster: Hash reads a hash from the node that owns it, even soon after it has moved.
func TestAHashOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	c := patient(t, cluster.URL())
	slot := cluster.Slot("plans")
	owner := cluster.Owner(slot)
	cluster.Nodes[owner].Do("HSET", "plans", "anna", "1/s", "berta", "2/s")
	want := map[string]string{"anna": "1/s", "berta": "2/s"}
	got, err := hashOf(t, c, "plans", nil)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	cluster.MoveSlot(slot, (owner+1)%3)
	require.Eventually(t, func() bool {
		got, err = hashOf(t, c, "plans", nil)
		return err == nil
	}, time.Minute, 10*time.Millisecond, "it never comes")
	assert.Equal(t, want, got)
}
