package envoy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestReservationsInAStore: any replica can commit a reservation, and only one commit counts.
func TestReservationsInAStore(t *testing.T) {
	server := startRedis(t)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("random ", 6)), 0o600))
	var nodes []*Service
	for range 2 {
		nodes = append(nodes, storedService(t, reservable, Options{Store: server.connect(t, 10*time.Second), ReservationKey: key}))
	}
	a, b := newGateway(t, nodes[0]), newGateway(t, nodes[1])
	for _, name := range []string{"window", "bucket", "sliding", "log", "calendar"} {
		of := "d: " + name + "=a | small=" + name
		one := "d: " + name + "=a"
		id := a.reserve(of, 30)
		require.NotEmpty(t, id)
		require.Empty(t, b.reserve(of, 30))
		require.EqualValues(t, 970, remains(t, nodes[1], one))
		require.True(t, b.commit(of, id, 10))
		soon(t, func() bool { return remains(t, nodes[0], one) == 990 && remains(t, nodes[0], "d: small="+name) == 40 })
		for _, g := range []*gateway{a, b} {
			require.False(t, g.commit(of, id, 0))
			require.False(t, g.commit(of, id, 500))
		}
		more := b.reserve(of, 10)
		require.True(t, a.commit(of, more, 25))
		soon(t, func() bool { return remains(t, nodes[1], one) == 965 })
		require.EqualValues(t, 965, remains(t, nodes[0], one))
	}
	stranger := newGateway(t, storedService(t, reservable, Options{Store: server.connect(t, 10*time.Second)}))
	id := a.reserve("d: window=b", 100)
	_, err := stranger.tryCommit("d: window=b", id, 0)
	require.Equal(t, codes.InvalidArgument, status.Code(err), "a replica without the key")
	require.NoError(t, server.process.Kill())
	_, err = a.tryCommit("d: window=b", id, 0)
	require.Equal(t, codes.Unavailable, status.Code(err))
}

// TestReplicasOfOtherLifetimes: an id is committed only once, even while replicas have different values of
// RESERVATION_LIFETIME.
func TestReplicasOfOtherLifetimes(t *testing.T) {
	server := startRedis(t)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("random ", 6)), 0o600))
	var nodes []*Service
	var gateways []*gateway
	for _, lifetime := range []time.Duration{0, time.Minute, 24 * time.Hour} {
		o := Options{Store: server.connect(t, 10*time.Second), ReservationKey: key, ReservationLifetime: lifetime}
		nodes = append(nodes, storedService(t, reservable, o))
		gateways = append(gateways, newGateway(t, nodes[len(nodes)-1]))
	}
	const of = "d: window=a"
	left := uint64(1000)
	for i, g := range gateways {
		id := g.reserve(of, 30)
		require.NotEmpty(t, id)
		require.True(t, g.commit(of, id, 40))
		left -= 40
		for j, other := range gateways {
			require.False(t, other.commit(of, id, 40), "%d committed by %d", i, j)
			require.EqualValues(t, left, remains(t, nodes[j], of), "%d committed by %d", i, j)
		}
	}
}

// TestARefusedReservationThatPasses: in shadow mode, a refused reservation passes but holds nothing, so its commit
// counts the complete cost.
func TestARefusedReservationThatPasses(t *testing.T) {
	server := startRedis(t)
	stored := storedService(t, reservable, Options{Store: server.connect(t, 10*time.Second), ShadowMode: true})
	inMemory, _ := newService(t, reservable, Options{ShadowMode: true})
	for _, s := range []*Service{stored, inMemory} {
		g := newGateway(t, s)
		for range 2 {
			id := g.reserve("d: window=a | small=a", 40)
			require.NotEmpty(t, id)
			require.True(t, g.commit("d: window=a | small=a", id, 40))
		}
		require.EqualValues(t, 920, remains(t, s, "d: window=a"))
	}
}
